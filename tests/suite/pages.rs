//! The page of an answer: small, the same each time, and readable on a phone and on a screen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::cli::check;
use crate::support::{folder, project};

/// The answer to an instance, as a file.
fn answer(folder: &Path, instance: &str) -> PathBuf {
    let file = project(&format!("instances/{instance}.toml"));
    let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .args(["solve", &file.to_string_lossy(), "--format", "json"])
        .output()
        .expect("the binary runs");
    let path = folder.join(format!("{instance}.json"));
    fs::write(&path, output.stdout).expect("the folder is writable");
    path
}

/// The page of an answer, with further options.
fn page(answer: &Path, further: &[&str]) -> String {
    let path = answer.with_extension("html");
    let (answer, output) = (answer.to_string_lossy(), path.to_string_lossy());
    let arguments = ["report", &answer, "-o", &output];
    check(&[&arguments, further].concat(), 0);
    fs::read_to_string(&path).expect("the page is written")
}

#[test]
fn a_page_says_what_to_run_and_why() {
    let folder = folder("page");
    let answer = answer(&folder, "hagemann-13b-2k-64gpu");
    let html = page(&answer, &[]);
    for heading in [
        "What to run",
        "Memory of each GPU",
        "Where the time of a step goes",
        "The pipeline in time",
        "Where each GPU sits",
        "The next best layouts",
        "Why not other degrees",
        "What would help",
        "How far to trust this",
    ] {
        assert!(html.contains(&format!("<h2>{heading}</h2>")), "{heading}");
    }
    assert!(
        html.contains("--tensor-model-parallel-size"),
        "the settings"
    );
    assert_eq!(html, page(&answer, &[]), "the same answer, the same page");
    let quick = page(&answer, &["--quick", "--to", "torchtitan"]);
    assert!(
        quick.contains("torchtitan cannot run this layout as it is"),
        "{quick}"
    );
    assert!(!quick.contains("What would help"));
}

#[test]
fn the_largest_jobs_make_small_pages() {
    let folder = folder("large-pages");
    for instance in ["llama-3.1-405b-8k-8192xh100", "megatron-1t-8k-16384xh100"] {
        let html = page(&answer(&folder, instance), &["--quick"]);
        assert!(html.len() < 1_000_000, "{instance}: {} bytes", html.len());
    }
}

#[test]
fn what_has_no_layout_gets_its_reasons() {
    let folder = folder("no-layout-page");
    let answer = answer(&folder, "llama-65b-2k-16gpu-24gb");
    let html = page(&answer, &["--quick"]);
    assert!(html.contains("No layout is possible") && html.contains("<code>memory_capacity"));
    let (file, trace) = (answer.to_string_lossy(), folder.join("trace.json"));
    let (_, said) = check(&["report", &file, "--trace", &trace.to_string_lossy()], 2);
    assert!(said.contains("there is no step to trace"), "{said}");
}

#[test]
fn figures_that_are_not_this_version_s_are_refused() {
    let folder = folder("old-page");
    let answer = answer(&folder, "hagemann-13b-2k-64gpu");
    let text = fs::read_to_string(&answer).expect("it is written");
    let mut document: Value = serde_json::from_str(&text).expect("it is JSON");
    document["prediction"]["step_time_s"] = 1.0.into();
    fs::write(&answer, document.to_string()).expect("the folder is writable");
    let (_, said) = check(
        &["report", &answer.to_string_lossy(), "-o", "never.html"],
        2,
    );
    assert!(said.contains("not those of this version"), "{said}");
}

#[test]
fn a_trace_has_a_track_per_stage_and_slices_in_order() {
    let folder = folder("trace");
    let answer = answer(&folder, "llama-65b-2k-128gpu-24gb");
    let path = folder.join("trace.json");
    let (answer, output) = (answer.to_string_lossy(), path.to_string_lossy());
    check(&["report", &answer, "--trace", &output], 0);
    let text = fs::read_to_string(&path).expect("the trace is written");
    let trace: Value = serde_json::from_str(&text).expect("it is JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    assert!(events.len() < 500_000);
    let names = events.iter().filter(|event| event["name"] == "thread_name");
    let stages = names.count();
    assert_eq!(stages, 8);
    for stage in 0..stages {
        let own = events.iter();
        let own = own.filter(|it| it["ph"] == "X" && it["tid"].as_u64() == Some(stage as u64));
        let times: Vec<(f64, f64)> = own
            .filter(|it| it["cat"] != "left-out")
            .map(|it| {
                (
                    it["ts"].as_f64().expect("a time"),
                    it["dur"].as_f64().expect("a time"),
                )
            })
            .collect();
        assert!(times.len() > 100);
        let in_order = |pair: &[(f64, f64)]| pair[0].0 + pair[0].1 <= pair[1].0 + 0.01;
        assert!(times.windows(2).all(in_order), "stage {stage}");
    }
}

/// A browser without a window, where there is one.
fn chromium() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| output.status.success())
    })
}

/// The page in a frame of some width, with a script that writes down how wide its contents are and which
/// elements reach beyond.
fn framed(html: &str, width: u32) -> String {
    let escaped = html.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><title>none</title><iframe id=f style=\"width:{width}px;height:800px;border:0\" \
         srcdoc=\"{escaped}\"></iframe><script>onload=()=>{{const d=f.contentDocument;\
         document.title='width '+d.documentElement.scrollWidth+' of '+f.clientWidth+': '+\
         [...d.querySelectorAll('body *')].filter(e=>e.getBoundingClientRect().right>f.clientWidth+1)\
         .slice(0,5).map(e=>e.tagName+'.'+e.className).join(', ')}}</script>"
    )
}

#[test]
fn nothing_overflows_on_a_phone_or_a_screen() {
    let Some(browser) = chromium() else {
        eprintln!("skipped: there is no chromium to show pages with");
        return;
    };
    let folder = folder("browser");
    for instance in [
        "hagemann-13b-2k-64gpu",
        "llama-3.1-405b-8k-8192xh100",
        "llama-65b-2k-16gpu-24gb",
    ] {
        let html = page(&answer(&folder, instance), &["--time-limit", "10"]);
        for width in [390, 1280] {
            let file = folder.join(format!("{instance}-{width}.html"));
            fs::write(&file, framed(&html, width)).expect("the folder is writable");
            let output = Command::new(browser)
                .args([
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--hide-scrollbars",
                    "--enable-logging=stderr",
                ])
                .args([
                    "--virtual-time-budget=5000",
                    "--window-size=1400,900",
                    "--dump-dom",
                ])
                .arg(format!(
                    "--user-data-dir={}",
                    folder.join("profile").display()
                ))
                .arg(format!("file://{}", file.display()))
                .output()
                .expect("the browser runs");
            let (dom, said) = (
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr),
            );
            let title = dom
                .split("<title>")
                .nth(1)
                .and_then(|it| it.split("</title>").next());
            let expected = format!("width {width} of {width}:");
            assert_eq!(title.map(str::trim), Some(expected.as_str()), "{instance}");
            assert!(!said.contains("CONSOLE"), "{instance}: {said}");
        }
    }
}
