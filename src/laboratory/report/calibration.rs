//! What a calibration learned, and what of it was adopted, for people.

use crate::catalog::{DEVIATIONS_OF_80_PERCENT, time_trust};
use crate::count::counted;
use crate::figures::{Figure, Kind, Seen};
use crate::laboratory::by_name;
use crate::laboratory::calibrate::{
    Calibrated, Compared, Confusion, Estimate, Fact, Measure, Measured, MemoryFigures, Missed,
    Outlier, SkippedRow, Speeds, Validation, Verdict,
};
use crate::quantity::Bytes;
use crate::report::joined;
use crate::report::number::{percent, risk};
use crate::report::style::{Meaning, Style, wrap};
use crate::report::table::Table;

/// Cluster and rows of a calibration, for the first line.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// Name of the base cluster.
    pub cluster: &'a str,
    /// Name of the framework.
    pub framework: &'a str,
    /// Where the runs come from.
    pub source: &'a str,
    /// The file that the result was written to.
    pub output: Option<&'a str>,
    /// What was read from each log.
    pub logs: &'a [String],
    /// Rows that could not be used.
    pub skipped: &'a [SkippedRow],
}

/// The whole report.
#[must_use]
pub fn calibration(subject: &Subject, calibrated: &Calibrated, style: &Style) -> String {
    let mut blocks = vec![head(subject, calibrated, style)];
    if !subject.logs.is_empty() {
        let logs = subject.logs.iter().map(|log| wrap(&format!("- {log}"), 2));
        blocks.push(logs.collect::<Vec<_>>().join("\n"));
    }
    blocks.extend(part(calibrated, Seen::InTime, style));
    blocks.extend(part(calibrated, Seen::InMemory, style));
    blocks.extend(listed(
        "Taken over, since every run states it:",
        &facts(&calibrated.facts),
    ));
    blocks.extend(raised(calibrated));
    blocks.extend(learned(calibrated));
    let doubts = doubts(&calibrated.fitted.confusions);
    blocks.extend(listed(
        &style.paint(Meaning::Warning, &wrap(DOUBTFUL, 2)),
        &doubts,
    ));
    let title = format!(
        "{} that the fit misses by far (a wrong row, a disturbed run, or something not modelled):",
        counted(calibrated.outliers.len(), "run")
    );
    let title = style.paint(Meaning::Warning, &wrap(&title, 2));
    blocks.extend(listed(&title, &outliers(&calibrated.outliers)));
    let title = format!("{} not used:", counted(subject.skipped.len(), "run"));
    blocks.extend(listed(&title, &skipped(subject.skipped)));
    blocks.push(compared(&calibrated.runs, style));
    blocks.push(last(subject, calibrated, style));
    joined(&blocks)
}

fn head(subject: &Subject, calibrated: &Calibrated, style: &Style) -> String {
    let evidence = calibrated.evidence;
    let title = format!(
        "{} under {}, calibrated on {}",
        subject.cluster, subject.framework, subject.source
    );
    let evidence = format!(
        "{}, {}, {} out of memory. `moved` counts standard deviations of the prior; `sd left` is \
         the share of it that the runs leave, `unseen` where they say nothing.",
        counted(evidence.step_times, "step time"),
        counted(evidence.peaks, "peak"),
        evidence.out_of_memory
    );
    let title = style.paint(Meaning::Heading, &wrap(&title, 2));
    format!("{title}\n{}", wrap(&evidence, 0))
}

/// Verdict, errors and figures of one part; `None` where no run tells of it.
fn part(calibrated: &Calibrated, seen: Seen, style: &Style) -> Option<String> {
    let (name, part) = match seen {
        Seen::InTime => ("Speeds", &calibrated.time),
        Seen::InMemory => ("Memory", &calibrated.memory),
    };
    let (verdict, validation) = (part.verdict?, part.validation.as_ref());
    let meaning = match verdict {
        Verdict::Accepted => Meaning::Good,
        _ => Meaning::Warning,
    };
    let is_taken = match seen {
        Seen::InTime => calibrated.speeds == Speeds::Fitted,
        Seen::InMemory => calibrated.memory_figures == MemoryFigures::Fitted,
    };
    let text = verdict_text(verdict, seen, validation);
    let decision = match (verdict, is_taken) {
        (Verdict::Accepted, _) => "",
        (Verdict::Untested, false) => " and not taken (`--always` takes it)",
        (_, true) => " but is taken",
        (Verdict::Implausible, false) => {
            " and is not taken: are units and job those of the columns?"
        }
        (_, false) => " and is not taken",
    };
    let text = format!("{name}: {text}{decision}");
    let mut lines = vec![style.paint(meaning, &wrap(&text, 2))];
    lines.extend(validation.map(|validation| wrap(&errors(validation, seen), 2)));
    lines.extend(level(calibrated).filter(|_| seen == Seen::InTime));
    let estimates = calibrated.fitted.estimates.iter();
    let own: Vec<&Estimate> = estimates
        .filter(|estimate| estimate.prior.parameter.is_seen(seen))
        .collect();
    lines.push(String::new());
    lines.push(table(&own).text(style));
    Some(lines.join("\n"))
}

fn verdict_text(verdict: Verdict, seen: Seen, validation: Option<&Validation>) -> &'static str {
    let gains = validation.is_some_and(|it| it.after.mean_error < it.before.mean_error);
    match (verdict, seen) {
        (Verdict::Accepted, Seen::InTime) => {
            "the fit predicts unseen runs better, and ranks them better"
        }
        (Verdict::Accepted, Seen::InMemory) => "the fit predicts unseen runs better",
        (Verdict::Untested, _) => "one run cannot be held out, so the fit is untested",
        (Verdict::ErrorNotBetter, Seen::InTime) if gains => {
            "the fit predicts unseen runs no better than their level alone"
        }
        (Verdict::ErrorNotBetter, Seen::InMemory) if gains => {
            "the fit hardly predicts unseen runs better"
        }
        (Verdict::ErrorNotBetter, _) => "the fit does not predict unseen runs better",
        (Verdict::RankingNotBetter, _) => {
            "the fit does not rank unseen runs better by 0.01 or more"
        }
        (Verdict::Implausible, Seen::InTime) => {
            "even the fit is off by a factor of two and more (is `step_time_s` in seconds?)"
        }
        (Verdict::Implausible, Seen::InMemory) => {
            "even the fit is off by a factor of two and more (is `peak_memory_gib` in GiB, 2^30 \
             bytes?)"
        }
    }
}

/// What one factor on every duration does in place of the fit, where it was tried.
fn level(calibrated: &Calibrated) -> Option<String> {
    let level = calibrated.level.as_ref()?;
    let decision = match calibrated.speeds {
        Speeds::Level => "is adopted; it changes no order among layouts",
        Speeds::Shipped | Speeds::Fitted => "is not adopted",
    };
    let error = match &level.validation {
        Some(validation) => format!("mean error {}", percent(validation.after.mean_error)),
        None => "untested".to_owned(),
    };
    let text = format!(
        "in place of the fit, all durations times {} (`{}`): {error}; that {decision}",
        three_digits(level.estimate.fitted),
        level.estimate.key,
    );
    Some(wrap(&text, 2))
}

fn errors(validation: &Validation, seen: Seen) -> String {
    let (before, after) = (&validation.before, &validation.after);
    let runs = format!(
        "{}, {} distinct",
        counted(validation.runs, "held-out run"),
        validation.distinct
    );
    let what = match seen {
        Seen::InTime => "step times",
        Seen::InMemory => "peaks",
    };
    let mut text = match validation.measure {
        Measure::Error => format!(
            "mean error of {what}: shipped {}, fitted {} ({runs})",
            percent(before.mean_error),
            percent(after.mean_error),
        ),
        Measure::Deviance => format!(
            "mean deviance of what fits: shipped {:.3}, fitted {:.3} ({runs})",
            before.mean_error, after.mean_error,
        ),
    };
    if let (Some(before), Some(after)) = (before.rank, after.rank) {
        let ranks = format!("shipped {before:.3}, fitted {after:.3}");
        text = format!("{text}; rank correlation of MFU: {ranks}");
    }
    text
}

/// Share of the prior's uncertainty above which the runs say nothing of a figure.
const UNKNOWN: f64 = 0.95;
/// Standard deviations beyond which something moved a figure all the same.
const MOVED: f64 = 0.5;

fn table(estimates: &[&Estimate]) -> Table {
    let header = ["figure", "shipped", "fitted", "moved", "sd left"];
    let mut table = Table::new(header).right(1..);
    for estimate in estimates {
        let parameter = estimate.prior.parameter;
        table.push([
            short(parameter).to_owned(),
            figure(parameter, estimate.shipped),
            figure(parameter, estimate.fitted),
            format!("{:+.1} sd", estimate.moved),
            if estimate.uncertainty > UNKNOWN && estimate.moved.abs() < MOVED {
                "unseen".to_owned()
            } else {
                percent(estimate.uncertainty)
            },
        ]);
    }
    table
}

/// The key without `framework.`, so that a row fits a line.
fn short(parameter: &Figure) -> &'static str {
    let key = parameter.key;
    key.strip_prefix("framework.").unwrap_or(key)
}

/// A figure in its unit with three digits.
fn figure(parameter: &Figure, value: f64) -> String {
    let (scaled, unit) = match parameter.kind {
        Kind::Count => return format!("{value:.0}"),
        Kind::Bytes => (value / 1e9, " GB"),
        Kind::BytesPerSecond => (value / 1e9, " GB/s"),
        Kind::Seconds if value < 1e-3 => (value * 1e6, " us"),
        Kind::Seconds => (value * 1e3, " ms"),
        Kind::Number | Kind::FlopsPerSecond | Kind::Choice { .. } => (value, ""),
    };
    format!("{}{unit}", three_digits(scaled))
}

fn three_digits(value: f64) -> String {
    let digits = if value == 0.0 {
        0
    } else {
        (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize
    };
    format!("{value:.digits$}")
}

/// A title above a list; nothing where there is no item.
fn listed(title: &str, items: &[String]) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let lines = items.iter().map(|item| wrap(&format!("- {item}"), 2));
    let lines: Vec<String> = [title.to_owned()].into_iter().chain(lines).collect();
    Some(lines.join("\n"))
}

fn facts(facts: &[Fact]) -> Vec<String> {
    let facts = facts.iter().map(|fact| {
        let [before, after] = [fact.before, fact.after].map(|it| figure(fact.parameter, it));
        format!("{}: {before}, now {after}", short(fact.parameter))
    });
    facts.collect()
}

/// What was done for runs that fitted and would be refused.
fn raised(calibrated: &Calibrated) -> Option<String> {
    let raised = calibrated.memory_raised;
    let text = format!(
        "Runs that fitted would be refused for their predicted peaks. Their layouts are accepted from now on, with \
         peaks up to {} larger than those of others (`seen_to_fit`).",
        percent(raised.exp_m1()),
    );
    (raised > 0.0).then(|| wrap(&text, 2))
}

/// Every run: what was measured, and what is predicted before and after.
fn compared(runs: &[Compared], style: &Style) -> String {
    let header = [
        "run", "step s", "before", "after", "peak GiB", "before", "after", "ended", "risk", "after",
    ];
    let mut table = Table::new(header).right(1..).fit(0).narrow();
    let first = runs.first().and_then(|run| run.place.file.as_ref());
    for run in runs {
        let place = &run.place;
        let name = match (place.line, &place.file) {
            (Some(line), file) if file.as_ref() == first => format!("line {line}"),
            _ => place.to_string(),
        };
        let cells = |figure: &Measured, digits: usize| {
            let predicted = figure.predicted;
            let numbers = [
                figure.measured,
                Some(predicted.before),
                Some(predicted.after),
            ];
            numbers.map(|number| number.map_or("-".to_owned(), |it| format!("{it:.digits$}")))
        };
        let ended = if run.ran_out { "oom" } else { "ok" };
        let risks = run
            .oom_probability
            .map(|it| [it.before, it.after].map(risk));
        let risks = risks.unwrap_or_else(|| ["-", "-"].map(ToOwned::to_owned));
        let rest = [ended.to_owned()].into_iter().chain(risks);
        let steps = cells(&run.step_time, 2).into_iter();
        let peaks = cells(&run.peak_gib, 1).into_iter();
        table.push([name].into_iter().chain(steps).chain(peaks).chain(rest));
    }
    let title =
        "Every run, measured, and predicted before and after (risk: of running out of memory)";
    let title = style.paint(Meaning::Heading, &wrap(title, 2));
    format!("{title}\n\n{}", table.text(style))
}

/// What was learned beyond the formulas, where it was asked for.
fn learned(calibrated: &Calibrated) -> Option<String> {
    let learned = calibrated.fitted.setup.cluster.discrepancy.as_ref()?;
    let corrections = learned.points.iter().map(|point| learned.logarithm(point));
    let (least, most) = corrections.fold((0.0_f64, 0.0_f64), |(least, most), correction| {
        (least.min(correction), most.max(correction))
    });
    let deviations = learned.standard_deviations(&learned.points);
    let spread = deviations.iter().sum::<f64>() / deviations.len().max(1) as f64;
    let adopted = match calibrated.setup.cluster.discrepancy {
        Some(_) => "adopted",
        None => "not adopted",
    };
    let text = format!(
        "Learned beyond the formulas ({adopted}): near these runs step times are corrected by \
         {:+.1} to {:+.1} %; 80 % are within ±{:.1} % of that (±{:.1} % before any run); far from \
         them by nothing.",
        least * 100.0,
        most * 100.0,
        spread * DEVIATIONS_OF_80_PERCENT * 100.0,
        learned.amplitude * DEVIATIONS_OF_80_PERCENT * 100.0,
    );
    Some(wrap(&text, 2))
}

const DOUBTFUL: &str = "Some figures move together: these runs cannot tell them apart, and only \
    their joint effect is known. Runs that differ in the degrees would.";

fn doubts(confusions: &[Confusion]) -> Vec<String> {
    let pairs = confusions.iter().map(|confusion| {
        let [one, other] = confusion.keys;
        format!(
            "{one} and {other} (correlation {:+.2})",
            confusion.correlation
        )
    });
    pairs.collect()
}

/// Most outliers that are listed.
const MOST: usize = 20;

fn outliers(outliers: &[Outlier]) -> Vec<String> {
    let shown = outliers.iter().take(MOST);
    let mut lines: Vec<String> = shown
        .map(|outlier| format!("{}: {}", outlier.place, missed(outlier)))
        .collect();
    if outliers.len() > MOST {
        lines.push(format!("and {} more", outliers.len() - MOST));
    }
    lines
}

fn missed(outlier: &Outlier) -> String {
    let predicted = outlier.predicted;
    let measured = outlier.measured.unwrap_or(f64::NAN);
    let error = (predicted / measured - 1.0) * 100.0;
    match outlier.what {
        Missed::StepTime => {
            format!("step time {measured:.3} s, predicted {predicted:.3} s ({error:+.0} %)")
        }
        Missed::Peak => {
            let [measured, predicted] = [measured, predicted].map(Bytes::new);
            format!("peak {measured}, predicted {predicted} ({error:+.0} %)")
        }
        Missed::Ending => {
            let probability = risk(predicted);
            format!("predicted to run out of memory with a probability of {probability}")
        }
    }
}

/// Rows that are left out, by reason.
fn skipped(rows: &[SkippedRow]) -> Vec<String> {
    let reasons = by_name(rows, |row| row.reason.as_str());
    let lines = reasons
        .iter()
        .map(|(reason, members)| format!("{}: {reason}", places(members)));
    lines.collect()
}

/// Most lines that are listed for one reason.
const MOST_LINES: usize = 8;

/// Where rows stand that are left out for the same reason: one with its name, several by their lines.
fn places(rows: &[&SkippedRow]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut before = &None;
    for SkippedRow { place, .. } in rows.iter().take(MOST_LINES) {
        parts.push(match (place.line, &place.file) {
            (Some(line), file) if rows.len() > 1 && file == before => line.to_string(),
            (Some(line), Some(file)) if rows.len() > 1 => format!("`{file}` line {line}"),
            _ => place.to_string(),
        });
        before = &place.file;
    }
    match rows.len().saturating_sub(MOST_LINES) {
        0 => parts.join(", "),
        more => format!("{} and {more} more", parts.join(", ")),
    }
}

fn last(subject: &Subject, calibrated: &Calibrated, style: &Style) -> String {
    let cluster = &calibrated.setup.cluster;
    let memory = cluster.calibration.memory;
    let trust = format!(
        "80 % of step times are now expected within ±{} of the prediction, and 80 % of peaks \
         within ±{}.",
        percent(time_trust(cluster, &calibrated.setup.framework).half_width()),
        // Of a logistic distribution.
        percent(memory.scale * 9_f64.ln()),
    );
    let mut lines = vec![wrap(&trust, 2)];
    match subject.output {
        Some(output) => {
            lines.push(wrap(&format!("Written to {output}. Use it:"), 2));
            let command = format!("parlayout solve INSTANCE --cluster {output}");
            lines.push(format!("  {}", style.paint(Meaning::Command, &command)));
        }
        None => lines.push("Nothing is written: add `-o MINE.toml`.".to_owned()),
    }
    lines.join("\n")
}
