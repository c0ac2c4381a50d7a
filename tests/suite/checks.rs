//! `parlayout check`: launch files of users, right verdicts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use parlayout::check::{self, CheckDocument, CheckError, Level, Request, Verdict};
use parlayout::instance::Overrides;
use parlayout::launch::{Facts, Stated};
use parlayout::report::{Answer, Document, Style};

use crate::cli;
use crate::support::{folder, project, snapshot};

/// What is checked without a search worth the name.
fn request() -> Request {
    Request {
        time_limit: Duration::from_millis(1),
        ..Request::default()
    }
}

fn checked(path: &Path, request: &Request) -> CheckDocument {
    check::check(path, request).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A file of a user's own.
fn written(name: &str, text: &str) -> PathBuf {
    let path = folder(&format!("check-{}", name.replace('.', "-"))).join(name);
    std::fs::write(&path, text).expect("a file for the test");
    path
}

/// The verdict on a file, with a part of what is found.
fn verdict(name: &str, text: &str, expected: Verdict, part: &str) -> CheckDocument {
    let document = checked(&written(name, text), &request());
    let shown = document
        .text(&Style::default())
        .replace("\n    ", " ")
        .replace("\n  ", " ");
    assert_eq!(document.verdict, expected, "{shown}");
    assert!(shown.contains(part), "{part}:\n{shown}");
    document
}

const BASE: &str = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --bf16 --micro-batch-size 1 \
    --global-batch-size 64 --seq-length 4096 --use-distributed-optimizer";

fn megatron(name: &str, flags: &str, expected: Verdict, part: &str) -> CheckDocument {
    verdict(
        &format!("{name}.sh"),
        &format!("{BASE} \\\n {flags}\n"),
        expected,
        part,
    )
}

#[test]
fn layers_that_would_be_dropped_are_an_error() {
    let seven = "--num-layers 7 --pipeline-model-parallel-size 2";
    megatron(
        "c1",
        seven,
        Verdict::Broken,
        "7 layers do not divide among 2 pipeline stages",
    );
    let uneven = format!("{seven} --decoder-first-pipeline-num-layers 3");
    megatron("c1-uneven", &uneven, Verdict::Fine, "");
    let thirty = "--num-layers 30 --pipeline-model-parallel-size 4";
    let found = megatron(
        "c2",
        thirty,
        Verdict::Broken,
        "so that 2 of them would be missing",
    );
    let finding = &found.findings[0];
    assert_eq!((finding.line, finding.level), (Some(2), Level::Error));
    assert_eq!(finding.key.as_deref(), Some("pipeline_model_parallel_size"));
    let air = "--num-layers 46 --pipeline-model-parallel-size 4 --tensor-model-parallel-size 4 \
        --expert-model-parallel-size 4 --num-experts 128 --sequence-parallel";
    megatron(
        "c6",
        air,
        Verdict::Broken,
        "--pipeline-model-parallel-layout",
    );
    let listed = format!("{air} --pipeline-model-parallel-layout 'Et*11|(t*12|)*2,t*11L'");
    megatron("c6-listed", &listed, Verdict::Fine, "");
    let short = format!("{air} --pipeline-model-parallel-layout 'Et*11|(t*11|)*2,t*11L'");
    megatron(
        "c6-short",
        &short,
        Verdict::Broken,
        "the stages hold 44 layers, the network has 46",
    );
}

#[test]
fn heads_and_batches_have_to_divide() {
    let heads = "--num-layers 60 --num-attention-heads 52 --tensor-model-parallel-size 8";
    megatron(
        "c9",
        heads,
        Verdict::Broken,
        "possible are 1, 2, 4, 13, 26, 52",
    );
    let groups = "--num-layers 64 --num-attention-heads 48 --group-query-attention --num-query-groups 6 \
        --tensor-model-parallel-size 4";
    megatron(
        "groups",
        groups,
        Verdict::Broken,
        "key_value_heads_divisible",
    );
    let batch = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --bf16 --num-layers 32 \
        --micro-batch-size 5 --global-batch-size 64 --tensor-model-parallel-size 4 --seq-length 2048";
    verdict("c15.sh", batch, Verdict::Broken, "global_batch_divisible");
    let sequence = "--num-layers 32 --context-parallel-size 8 --seq-length 1000";
    megatron("sequence", sequence, Verdict::Broken, "sequence_divisible");
    let gpus = "--num-layers 30 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 3";
    megatron("gpus", gpus, Verdict::Broken, "gpu_count");
}

#[test]
fn interleaved_groups_are_megatrons_own_rule() {
    let six = "torchrun --nproc_per_node 6 --nnodes 1 pretrain_gpt.py --bf16 --num-layers 12 --seq-length 2048 \
        --pipeline-model-parallel-size 6 --num-layers-per-virtual-pipeline-stage 1 --micro-batch-size 1";
    let few = format!("{six} --global-batch-size 3");
    verdict(
        "c12.sh",
        &few,
        Verdict::Broken,
        "use a global batch of at least stages x micro-batch x replicas, 6",
    );
    let rest = format!("{six} --global-batch-size 8");
    verdict(
        "rest.sh",
        &rest,
        Verdict::Broken,
        "leave 2, fewer than 6 stages",
    );
    let grouped = format!("{rest} --microbatch-group-size-per-virtual-pipeline-stage 8");
    verdict("grouped.sh", &grouped, Verdict::Fine, "");
    let small = format!(
        "{six} --global-batch-size 12 --microbatch-group-size-per-virtual-pipeline-stage 3"
    );
    verdict(
        "c16.sh",
        &small,
        Verdict::Broken,
        "a group of 3 micro-batches is smaller than 6 stages",
    );
}

#[test]
fn experts_fold_onto_the_same_ranks() {
    for degree in [16, 32] {
        let text = format!(
            "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --bf16 --num-layers 48 --num-experts 256 \
             --context-parallel-size 16 --expert-model-parallel-size {degree} --seq-length 43008 \
             --micro-batch-size 1 --global-batch-size 32"
        );
        verdict(&format!("c17-{degree}.sh"), &text, Verdict::Fine, "");
    }
}

#[test]
fn other_frameworks_have_rules_of_their_own() {
    let ddp = "base_model: x/y\ndp_replicate_size: 4\ndp_shard_size: 1\ntensor_parallel_size: 2\n\
        micro_batch_size: 1\nsequence_len: 2048\nbf16: true\n";
    verdict("c21.yaml", ddp, Verdict::Broken, "needs several shards");
    let shards = ddp.replace("dp_shard_size: 1", "dp_shard_size: 2");
    verdict("c21-sharded.yaml", &shards, Verdict::Fine, "");
    let titan = "[training]\nlocal_batch_size = 6\nseq_len = 4096\n[parallelism]\n\
        pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 4\n\
        data_parallel_shard_degree = 4\n[activation_checkpoint]\nmode = \"full\"\n";
    let found = verdict(
        "c22.toml",
        titan,
        Verdict::Broken,
        "does not divide into pipeline micro-batches of 4",
    );
    assert_eq!(found.findings[0].line, Some(2));
    let neox = "{\n \"pipe_parallel_size\": 2,\n \"model_parallel_size\": 2,\n \"num_layers\": 12,\n \
        \"zero_optimization\": {\"stage\": 2},\n \"train_micro_batch_size_per_gpu\": 4,\n \"seq_length\": 2048\n}\n";
    let found = verdict(
        "neox.yml",
        neox,
        Verdict::Broken,
        "need `pipe_parallel_size` 0, not 2",
    );
    assert_eq!(found.findings[0].line, Some(5));
    let deepspeed = "{\"train_batch_size\": 100, \"train_micro_batch_size_per_gpu\": 8, \
        \"gradient_accumulation_steps\": 4, \"bf16\": {\"enabled\": true}}";
    verdict(
        "deepspeed.json",
        deepspeed,
        Verdict::Broken,
        "100 is not a multiple of micro-batch x accumulation, 32",
    );
    let full = "--num-layers 32 --recompute-granularity full";
    megatron(
        "full",
        full,
        Verdict::Broken,
        "--recompute-method uniform --recompute-num-layers 1",
    );
}

#[test]
fn what_costs_weeks_is_said() {
    let wide = "torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 80 --micro-batch-size 1 \
        --global-batch-size 8 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2";
    verdict(
        "a8.sh",
        wide,
        Verdict::Fine,
        "nothing asks for bf16 or fp16",
    );
    let padded = "--num-layers 32 --vocab-size 151669 --tensor-model-parallel-size 4";
    megatron(
        "c10",
        padded,
        Verdict::Fine,
        "padded from 151669 to 152064 entries, a multiple of 512",
    );
    let narrow = "--num-layers 32 --grad-reduce-in-bf16";
    megatron(
        "narrow",
        narrow,
        Verdict::Fine,
        "gradients of 4 micro-batches are added in 16 bits",
    );
    let across = "--num-layers 32 --tensor-model-parallel-size 16";
    megatron(
        "across",
        across,
        Verdict::Fine,
        "crosses NVLink domains of 8",
    );
    let core = "--num-layers 32 --recompute-granularity selective";
    megatron(
        "core",
        core,
        Verdict::Fine,
        "saves nothing with flash attention",
    );
    let head = "--num-layers 16 --hidden-size 2048 --num-attention-heads 16 --vocab-size 256000 \
        --pipeline-model-parallel-size 4";
    megatron(
        "head",
        head,
        Verdict::Fine,
        "computes as much as 10.4 layers",
    );
}

/// What is known of every fixture, beside the file.
fn fixtures() -> Vec<(&'static str, Request)> {
    let with = |model: Option<&str>, gpus: Option<u32>, more: &[(&'static str, &str)]| {
        let mut overrides = Overrides::none();
        overrides.flag("cluster", "dgx-h100-80gb");
        let facts = Facts::default().with("gpus", gpus);
        let facts = more.iter().fold(facts, |facts, (column, value)| {
            facts.with(column, Some(value))
        });
        if let Some(model) = model {
            overrides.flag("model", model);
        }
        Request {
            overrides,
            model: model.map(str::to_owned),
            names_cluster: true,
            stated: Stated {
                facts,
                ..Stated::default()
            },
            time_limit: Duration::from_mins(1),
        }
    };
    vec![
        ("megatron-70b.sh", with(None, None, &[])),
        ("megatron-gpt3.sh", with(None, None, &[])),
        ("megatron-8b.sh", with(None, Some(8), &[])),
        ("megatron-dropped-layers.sh", with(None, None, &[])),
        ("bridge-70b.py", with(Some("llama-3.1-70b"), Some(64), &[])),
        ("torchtitan-8b.toml", with(None, Some(64), &[])),
        ("nanotron-1b.yaml", with(None, None, &[])),
        (
            "deepspeed-zero3.json",
            with(Some("llama-3.1-8b"), None, &[("seq_len", "4096")]),
        ),
        ("neox-20b.yml", with(None, Some(96), &[("vocab", "50432")])),
        ("axolotl-8b.yaml", with(None, None, &[])),
        (
            "accelerate-nd.yaml",
            with(
                Some("llama-3.1-8b"),
                None,
                &[
                    ("micro_batch", "1"),
                    ("seq_len", "8192"),
                    ("global_batch", "64"),
                ],
            ),
        ),
        ("llama-factory-full.yaml", with(None, Some(16), &[])),
        ("ms-swift.sh", with(None, None, &[])),
        ("maxtext-8b.sh", with(None, None, &[])),
        (
            "megatron-deepspeed-7b.sh",
            with(Some("llama-2-7b"), None, &[]),
        ),
    ]
}

#[test]
fn launch_files_of_every_framework_read_fully() {
    for (name, request) in fixtures() {
        let path = project("tests/data/launch").join(name);
        let mut document = checked(&path, &request);
        document.file = name.to_owned();
        // The proof is tested elsewhere, and its time is the machine's.
        snapshot(&format!("check_{name}"), &document.text(&Style::default()));
        if name != "megatron-dropped-layers.sh" {
            assert!(
                document.unknown.is_empty(),
                "{name}: {:?}",
                document.unknown
            );
            assert_ne!(document.verdict, Verdict::Broken, "{name}");
        }
    }
}

#[test]
fn what_vendors_ship_is_legal_and_fits() {
    for (name, request) in fixtures().into_iter().take(3) {
        let document = checked(&project("tests/data/launch").join(name), &request);
        assert_eq!(
            document.verdict,
            Verdict::Fine,
            "{name}:\n{}",
            document.text(&Style::default())
        );
        assert!(document.prediction.is_some(), "{name}");
    }
}

#[test]
fn what_is_not_known_is_asked_for_by_name() {
    let text = "torchrun pretrain_gpt.py --bf16 --num-layers 30 --tensor-model-parallel-size $WIDTH \
        --pipeline-model-parallel-size ${STAGES} --micro-batch-size 1 --recompute-granularity full";
    let path = written("unknown.sh", text);
    let document = checked(&path, &request());
    let asked: Vec<&str> = document
        .unknown
        .iter()
        .map(|it| it.argument.as_str())
        .collect();
    for argument in [
        "--set STAGES=…",
        "--set WIDTH=…",
        "--gpus",
        "--cluster",
        "--model",
        "--global-batch",
    ] {
        assert!(asked.contains(&argument), "{argument}: {asked:?}");
    }
    // What can be said is said.
    assert!(
        document
            .findings
            .iter()
            .any(|it| it.rule == "recompute_arguments")
    );
    let path = path.to_str().expect("a plain path");
    let (stdout, _) = cli::check(
        &[
            "check", path, "--set", "STAGES=4", "--set", "WIDTH=1", "--gpus", "8",
        ],
        3,
    );
    assert!(
        stdout.contains("30 layers do not divide among 4"),
        "{stdout}"
    );
    let (json, _) = cli::check(&["check", path, "--set", "STAGES=4", "--format", "json"], 3);
    assert_eq!(
        CheckDocument::read(&json).expect("it is one").verdict,
        Verdict::Broken
    );
    let (sarif, _) = cli::check(
        &["check", path, "--set", "STAGES=4", "--format", "sarif"],
        3,
    );
    let sarif: serde_json::Value = serde_json::from_str(&sarif).expect("SARIF is JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["level"], "error");
}

#[test]
fn a_repair_is_the_least_change() {
    let text = "torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --bf16 --num-layers 32 --hidden-size 4096 \
        --ffn-hidden-size 11008 --num-attention-heads 32 --swiglu --vocab-size 32000 --seq-length 4096 \\\n \
        --untie-embeddings-and-output-weights --normalization RMSNorm --use-distributed-optimizer \\\n \
        --micro-batch-size 3 \\\n --global-batch-size 64\n";
    let path = written("repair.sh", text);
    let mut request = fixtures().swap_remove(0).1;
    request.time_limit = Duration::from_mins(1);
    let document = checked(&path, &request);
    let repair = document.repair.expect("another micro-batch is legal");
    assert!(repair.change.contains("micro-batch"), "{repair:?}");
    let edit = &repair.edits[0];
    assert_eq!((edit.line, edit.old.trim()), (3, "--micro-batch-size 3 \\"));
    assert!(
        ["--micro-batch-size 1 \\", "--micro-batch-size 2 \\"].contains(&edit.new.trim()),
        "{edit:?}"
    );
}

#[test]
fn hostile_files_are_refused_in_words() {
    let refused = |name: &str, text: &[u8], part: &str| {
        let path = folder(&format!("hostile-{}", name.replace('.', "-"))).join(name);
        std::fs::write(&path, text).expect("a file for the test");
        let error = check::check(&path, &request()).expect_err("it is refused");
        assert!(error.to_string().contains(part), "{name}: {error}");
        assert!(matches!(error, CheckError::Launch(_)), "{name}");
    };
    refused("large.sh", &vec![b'a'; 2 << 20], "larger than 1 MiB");
    refused(
        "binary.sh",
        b"\x7fELF\0\0--tensor-model-parallel-size 4",
        "is not text",
    );
    refused("empty.sh", b"", "says nothing of a layout");
    refused("deep.yaml", "a: [".repeat(1000).as_bytes(), "YAML");
    refused(
        "broken.toml",
        b"[parallelism\ntensor",
        "broken.toml:1` is not TOML",
    );
    refused("broken.json", b"{\"train_batch_size\": ", "JSON");
    let huge = "torchrun pretrain_gpt.py --bf16 --num-layers 99999999 --tensor-model-parallel-size 9999999 \
        --pipeline-model-parallel-size 88888888 --context-parallel-size 7777777 --micro-batch-size 99999999 \
        --num-virtual-stages-per-pipeline-rank 99999999 --global-batch-size 18446744073709551615";
    verdict("huge.sh", huge, Verdict::Broken, "the degrees multiply to");
    let loops = "A=$B; B=$A\nTP=$A$A$A\nrun --tensor-model-parallel-size $TP --num-layers $(rm -rf /tmp/x)\n";
    let document = checked(&written("loops.sh", loops), &request());
    assert!(
        document
            .unknown
            .iter()
            .any(|it| it.what.contains("num_layers")),
        "{:?}",
        document.unknown
    );
}
