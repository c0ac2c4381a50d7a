//! Files of runs as people write them: misspelt, cut short, with impossible figures.

use std::path::{Path, PathBuf};
use std::process::Command;

use parlayout::laboratory::backtest;
use parlayout::laboratory::runs::{self, Modelled, RunSetups, RunsError, RunsFile, Status};

const HEADER: &str = "source,layers,hidden,ffn,heads,kv_heads,vocab,gpu,gpus,gpus_per_node,\
                      nvlink_domain,node_bandwidth_gb_s,internode_allreduce_gb_s,seq_len,\
                      global_batch,micro_batch,tensor_parallel,pipeline_parallel,data_parallel,\
                      sequence_parallel,checkpointing,framework,software,status,step_time_s,\
                      peak_memory_gib,mfu";
const ROW: &str = "ours,32,4096,11008,32,32,32000,a100-80gb,16,8,,,100,2048,128,1,2,1,8,true,none,\
                   megatron-lm,Megatron-LM core_r0.12,ok,6.5,40,0.5";

/// A row that differs in some columns.
fn row(changes: &[(&str, &str)]) -> String {
    let fields = HEADER.split(',').zip(ROW.split(','));
    let changed = fields.map(|(name, value)| {
        let change = changes.iter().find(|(column, _)| *column == name);
        change.map_or(value, |(_, value)| value).to_owned()
    });
    changed.collect::<Vec<_>>().join(",")
}

/// A file of the test `name`.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let name = format!("parlayout-runs-{name}-{}.csv", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).expect("the folder is writable");
    path
}

/// Reads a text as a file of runs.
fn read(name: &str, text: &str) -> Result<RunsFile, RunsError> {
    let path = file(name, text.as_bytes());
    let found = runs::read(&path);
    std::fs::remove_file(path).expect("it was written");
    found
}

/// All that a command prints, with blanks for breaks of lines, and its exit code.
fn output(arguments: &[&str], path: &Path) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_parlayout"))
        .args(arguments)
        .arg(path)
        .output()
        .expect("the binary runs");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).expect("output is UTF-8");
    let words: Vec<&str> = text
        .split_whitespace()
        .filter(|word| *word != "|")
        .collect();
    (words.join(" "), output.status.code().unwrap_or(-1))
}

#[test]
fn every_command_names_faulty_rows_and_goes_on() {
    let faults = [
        (
            row(&[("step_time_s", "abc")]),
            "column `step_time_s` holds `abc`, not a number of seconds",
        ),
        (
            row(&[("step_time_s", "NaN")]),
            "column `step_time_s` holds `NaN`",
        ),
        (
            row(&[("step_time_s", "\"3,5\"")]),
            "column `step_time_s` holds `3,5`",
        ),
        (
            row(&[("step_time_s", "2e6")]),
            "column `step_time_s` holds `2e6`",
        ),
        (
            row(&[("peak_memory_gib", "-4")]),
            "column `peak_memory_gib` holds `-4`",
        ),
        (row(&[("mfu", "50")]), "column `mfu` holds `50`"),
        (
            row(&[("sequence_parallel", "maybe")]),
            "column `sequence_parallel` holds `maybe`",
        ),
        (
            row(&[("tensor_parallel", "-1")]),
            "column `tensor_parallel` holds `-1`",
        ),
        (
            row(&[("internode_allreduce_gb_s", "0")]),
            "column `internode_allreduce_gb_s` holds `0`",
        ),
        (
            row(&[("internode_allreduce_gb_s", "4e7")]),
            "column `internode_allreduce_gb_s` holds `4e7`, not GB/s above 0",
        ),
        (
            row(&[("status", "runing")]),
            "column `status` holds `runing`, not `ok` or `oom`",
        ),
        ("32,4096".to_owned(), "it has 2 fields below 27 columns"),
    ];
    let good = [
        ROW.to_owned(),
        row(&[("micro_batch", "2")]),
        row(&[("status", "OOM")]),
    ];
    let rows = good.iter().chain(faults.iter().map(|(row, _)| row));
    let text: Vec<&str> = std::iter::once(HEADER)
        .chain(rows.map(String::as_str))
        .collect();
    let path = file("faults", text.join("\r\n").as_bytes());
    let check = |arguments: &[&str], code: i32| {
        let (text, found) = output(arguments, &path);
        assert_eq!(found, code, "{text}");
        for (line, (_, fault)) in (5..).zip(&faults) {
            let named = ["", " (ours)"].map(|run| format!("line {line}{run}: {fault}"));
            let is_named = named.iter().any(|named| text.contains(named));
            assert!(is_named, "{arguments:?}: {named:?}\n{text}");
        }
        text
    };
    let text = check(&["evaluate", "--runs"], 2);
    assert!(text.contains("15 rows, 3 modelled"), "{text}");
    check(&["backtest", "--format", "json"], 0);
    let text = check(&["calibrate", "--cluster", "dgx-a100-80gb"], 0);
    assert!(
        text.contains("2 step times, 2 peaks, 1 out of memory"),
        "{text}"
    );
    std::fs::remove_file(path).expect("it was written");
}

#[test]
fn ends_are_known_in_any_case() {
    let statuses = ["ok", "Ok", "OOM", "error", "Kernel_Unavailable", ""];
    let rows: Vec<String> = statuses.iter().map(|end| row(&[("status", end)])).collect();
    let file = read("ends", &format!("{HEADER}\n{}", rows.join("\n"))).expect("it is right");
    let found: Vec<Status> = file.runs.iter().map(|run| run.status).collect();
    let [ok, other] = [Status::Ok, Status::Other];
    assert_eq!(
        found,
        [ok, ok, Status::OutOfMemory, other, other, Status::Unstated]
    );
    let setups = RunSetups::new(None, None).expect("no framework is named");
    let files = [file];
    let (cases, skipped) = backtest::cases(&files, |run| setups.model(run));
    assert_eq!(cases.len(), 3);
    let reasons: Vec<&str> = skipped.iter().map(|it| it.because.as_str()).collect();
    assert_eq!((reasons, skipped[0].runs), (vec!["no status stated"], 1));
}

/// What a row is predicted with.
fn modelled(changes: &[(&str, &str)]) -> Modelled {
    let name = changes
        .iter()
        .map(|(column, value)| format!("{column}{value}"));
    let name = format!("modelled-{}", name.collect::<String>());
    let file = read(&name, &format!("{HEADER}\n{}", row(changes))).expect("it is right");
    let setups = RunSetups::new(None, None).expect("no framework is named");
    setups.model(&file.runs[0]).expect("it can be")
}

#[test]
fn an_unknown_source_ran_on_the_data_sheet_cluster() {
    let cluster = |source: &str| modelled(&[("source", source)]).job.cluster.name;
    assert_eq!(cluster("ours"), "dgx-a100-80gb");
    assert_eq!(cluster(""), "dgx-a100-80gb");
    assert_eq!(cluster("hagemann-2023"), "a100-80gb-one-nic");
    let path = file("assumed", format!("{HEADER}\n{ROW}\n").as_bytes());
    let (text, _) = output(&["evaluate", "--runs"], &path);
    let said = "1 ours: dgx-a100-80gb (data-sheet), megatron-lm";
    assert!(text.contains(said), "{text}");
    let (text, _) = output(&["evaluate", "--format", "json", "--runs"], &path);
    assert!(
        text.contains("\"assumed_cluster\":\"dgx-a100-80gb\""),
        "{text}"
    );
    let (text, _) = output(&["backtest", "--by", "source"], &path);
    assert!(
        text.contains("ours dgx-a100-80gb data-sheet megatron-lm 1"),
        "{text}"
    );
    let (text, _) = output(&["backtest", "--format", "json"], &path);
    assert!(text.contains("\"cluster\": \"dgx-a100-80gb\""), "{text}");
    std::fs::remove_file(path).expect("it was written");
}

#[test]
fn a_row_may_state_its_network() {
    let own = |changes: &[(&str, &str)]| modelled(changes).job.cluster;
    let gb200 = own(&[("gpu", "gb200"), ("gpus_per_node", "")]);
    assert_eq!((gb200.gpus_per_node, gb200.domain()), (4, 72));
    assert_eq!(own(&[("nvlink_domain", "16")]).domain(), 16);
    assert_eq!(own(&[("nvlink_domain", "8")]).nvlink_domain, None);
    let ports = own(&[
        ("internode_allreduce_gb_s", ""),
        ("node_bandwidth_gb_s", "100"),
    ]);
    assert!((ports.inter_node_bandwidth.value() - 70e9).abs() < 1.0);
}

#[test]
fn what_is_not_stated_gets_no_verdict() {
    let unstated = |changes: &[(&str, &str)]| modelled(changes).unstated;
    assert_eq!(unstated(&[]), None);
    assert_eq!(unstated(&[("checkpointing", "")]), Some("checkpointing"));
    let pipeline = [("pipeline_parallel", "2"), ("data_parallel", "4")];
    assert_eq!(unstated(&pipeline), Some("virtual stages"));
    let chunks = |changes: &[(&str, &str)]| modelled(changes).layout.combination.virtual_stages;
    assert_eq!((chunks(&pipeline), chunks(&[])), (16, 1));
    let rows = [
        row(&[("checkpointing", ""), ("status", "oom")]),
        ROW.to_owned(),
    ];
    let path = file(
        "unstated",
        format!("{HEADER}\n{}", rows.join("\n")).as_bytes(),
    );
    let (text, _) = output(&["evaluate", "--format", "csv", "--runs"], &path);
    assert!(text.contains("oom,6.5,40,0.5,unstated,"), "{text}");
    let (text, _) = output(&["backtest", "--format", "json"], &path);
    assert!(text.contains("\"none\": 1"), "{text}");
    std::fs::remove_file(path).expect("it was written");
}

/// A run that states its virtual stages was cut so that its model chunks are equal, embedding and head
/// counted as a layer each, and not as without them.
#[test]
fn an_interleaved_run_has_the_cut_of_its_framework() {
    let changes = [
        ("layers", "30"),
        ("pipeline_parallel", "4"),
        ("data_parallel", "2"),
        ("framework", "internevo"),
    ];
    let cut = |chunks: u32| {
        let text = format!("{HEADER},virtual_stages\n{},{chunks}", row(&changes));
        let file = read(&format!("cut-{chunks}"), &text).expect("it is right");
        let setups = RunSetups::new(None, None).expect("no framework is named");
        let layout = setups.model(&file.runs[0]).expect("it can be").layout;
        layout
            .stages
            .iter()
            .map(|stage| stage.layers)
            .collect::<Vec<_>>()
    };
    assert_eq!(cut(2), [7, 8, 8, 7]);
    assert_eq!(cut(1), [8, 8, 7, 7]);
}

#[test]
fn kernels_and_recomputation_follow_the_framework() {
    let kernel = |changes: &[(&str, &str)]| {
        let modelled = modelled(changes);
        modelled.layout.combination.attention_kernel.to_string()
    };
    // Transformer Engine runs cuDNN's, whatever algorithm a source names.
    assert_eq!(kernel(&[]), "cudnn");
    assert_eq!(kernel(&[("framework", "fsdp")]), "flash-attention-2");
    let llm_foundry = [("framework", ""), ("source", "llm-foundry")];
    assert_eq!(kernel(&llm_foundry), "flash-attention-1");
    // FSDP's selective checkpointing recomputes every second product, not attention.
    let time = |changes: &[(&str, &str)]| modelled(changes).prediction.step_time.value();
    let selective = [("framework", "fsdp"), ("checkpointing", "selective")];
    let full = [("framework", "fsdp"), ("checkpointing", "full")];
    let (none, selective, full) = (
        time(&[("framework", "fsdp")]),
        time(&selective),
        time(&full),
    );
    assert!((0.4..0.7).contains(&((selective - none) / (full - none))));
    let layers = |changes: &[(&str, &str)]| modelled(changes).layout.stages[0].recomputed;
    // What trained and would need many times its memory was recomputed.
    let large = [("seq_len", "65536"), ("checkpointing", "")];
    assert_eq!(layers(&large)[0], 32);
    assert_eq!(layers(&[("checkpointing", "")])[0], 0);
    let failed = [
        ("seq_len", "65536"),
        ("checkpointing", ""),
        ("status", "oom"),
    ];
    assert_eq!(layers(&failed)[0], 0);
}

#[test]
fn what_cannot_be_is_not_modelled() {
    let check = |changes: &[(&str, &str)], part: &str| {
        let file = read("shapes", &format!("{HEADER}\n{}", row(changes))).expect("it is right");
        let setups = RunSetups::new(None, None).expect("no framework is named");
        let reason = setups.model(&file.runs[0]).expect_err("it cannot be").0;
        assert!(reason.contains(part), "{reason}");
    };
    check(&[("layers", "1025")], "1025 layers are more than 1024");
    check(
        &[("kv_heads", "5")],
        "5 key-value heads do not divide 32 heads",
    );
    check(
        &[("heads", "30")],
        "30 heads do not divide a hidden size of 4096",
    );
    check(&[("gpus_per_node", "0")], "a node has 0 GPUs");
    check(
        &[("nvlink_domain", "12")],
        "an NVLink domain of 12 GPUs is no whole number of nodes of 8",
    );
    check(
        &[("micro_batch", "3")],
        "8 replicas with micro-batches of 3 do not divide",
    );
    check(
        &[("gpu", "abacus")],
        "no cluster of the catalog has the GPU abacus",
    );
}

#[test]
fn runs_beyond_the_cost_model_are_not_predicted_as_others() {
    let predicted = |column: &str, value: &str| {
        let text = format!("{HEADER},{column}\n{ROW},{value}\n");
        let file = read(column, &text).expect("it is right");
        assert!(file.warnings.is_empty(), "{:?}", file.warnings);
        let setups = RunSetups::new(None, None).expect("no framework is named");
        setups.model(&file.runs[0])
    };
    let check = |column: &str, value: &str, part: &str| {
        let reason = predicted(column, value).expect_err("it is not modelled").0;
        assert_eq!(reason, format!("{part} not modelled"));
    };
    check("task", "qlora", "adapters (LoRA) are");
    check(
        "sliding_window",
        "128",
        "sliding-window attention of dense networks is",
    );
    check("offload", "optimizer 0.5", "offload to the host is");
    for (column, value) in [("task", "sft"), ("offload", "none"), ("kv_lora", "0")] {
        assert!(predicted(column, value).is_ok(), "{column}");
    }
    // Experts are judged apart.
    let apart = predicted("experts", "8").expect_err("it is judged apart").0;
    assert_eq!(apart, "mixtures of experts are judged apart");
    let wide = predicted("head_dim", "256").expect("it is modelled");
    assert_eq!(wide.job.transformer.head_width, 256);
}

#[test]
fn files_that_are_no_runs_are_refused() {
    let check = |text: &str, part: &str| {
        let message = read("refused", text)
            .expect_err("it is no file of runs")
            .to_string();
        assert!(message.contains(part), "{message}");
    };
    check(&format!("{HEADER}\n"), "has a header and no runs");
    check(
        &format!("{HEADER},mfu\n{ROW},1\n"),
        "more than one column `mfu`",
    );
    check(
        &HEADER.replace("seq_len", "seqlen"),
        "`seq_len` (is it `seqlen`?)",
    );
    check(&HEADER.replace(',', ";"), "semicolons");
    let misspelt = HEADER.replace("peak_memory_gib", "peak_memory_gb");
    let file = read("misspelt", &format!("{misspelt}\n{ROW}\n")).expect("it is right");
    assert!(file.warnings[0].contains("did you mean `peak_memory_gib`?"));
}

#[test]
fn runs_of_another_gpu_are_left_out() {
    let path = file("gpu", format!("{HEADER}\n{ROW}\n").as_bytes());
    for arguments in [
        ["evaluate", "--cluster", "dgx-h100-80gb", "--runs"],
        ["backtest", "--cluster", "dgx-h100-80gb", "--by=group"],
    ] {
        let (text, _) = output(&arguments, &path);
        assert!(
            text.contains("it ran on a100-80gb, not h100-80gb"),
            "{text}"
        );
    }
    std::fs::remove_file(path).expect("it was written");
}
