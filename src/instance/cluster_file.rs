//! Writes a cluster file: the keys of `[cluster]`, complete, as `--cluster FILE` reads them.

use std::fmt::Write as _;

use crate::catalog;
use crate::cluster::{Calibration, Cluster, Discrepancy, Efficiency};
use crate::framework::{Framework, MemoryProfile, SpeedProfile};
use crate::quantity::{Bytes, BytesPerSecond, FlopsPerSecond, Measured, Seconds};

/// The text of a cluster file with all figures of the cluster, and those of the framework that it
/// was fitted with. Numbers are written with six digits, those of a data sheet as they are.
///
/// # Panics
///
/// Never: writing to a text cannot fail.
#[must_use]
pub fn cluster_file(cluster: &Cluster, framework: &Framework) -> String {
    let mut file = File(String::new());
    file.machine(cluster);
    file.efficiency(&cluster.efficiency);
    file.calibration(&cluster.calibration);
    file.framework(framework);
    file.memory(&framework.memory);
    file.speed(&framework.speed);
    if let Some(discrepancy) = &cluster.discrepancy {
        file.discrepancy(discrepancy);
    }
    file.0
}

/// Digits of written numbers.
const DIGITS: i32 = 6;

/// The nearest number of six digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = DIGITS - 1 - value.abs().log10().floor() as i32;
    // Dividing by a power of ten keeps short decimals short where multiplying would not.
    if exponent >= 0 {
        let power = 10_f64.powi(exponent);
        (value * power).round() / power
    } else {
        let power = 10_f64.powi(-exponent);
        (value / power).round() * power
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Base units in one of the unit called `unit`.
fn factor<Q: Measured>(unit: &str) -> f64 {
    let mut units = Q::UNITS.iter();
    let found = units.find(|(name, _)| *name == unit);
    found.map_or(1.0, |(_, factor)| *factor)
}

struct File(String);

impl File {
    fn line(&mut self, key: &str, value: &str) {
        writeln!(self.0, "{key} = {value}").expect("a text takes all lines");
    }

    fn section(&mut self, name: &str) {
        writeln!(self.0, "\n[{name}]").expect("a text takes all lines");
    }

    fn text(&mut self, key: &str, text: &str) {
        self.line(key, &quoted(text));
    }

    fn number(&mut self, key: &str, value: f64) {
        self.line(key, &format!("{}", rounded(value)));
    }

    /// A fitted quantity in the unit called `unit`.
    fn quantity<Q: Measured>(&mut self, key: &str, base: f64, unit: &str) {
        let value = rounded(base / factor::<Q>(unit));
        self.line(key, &format!("\"{value} {unit}\""));
    }

    /// A quantity of a data sheet.
    fn stated<Q: Measured>(&mut self, key: &str, base: f64, unit: &str) {
        let value = base / factor::<Q>(unit);
        self.line(key, &format!("\"{value} {unit}\""));
    }

    fn duration(&mut self, key: &str, duration: Seconds, unit: &str) {
        self.quantity::<Seconds>(key, duration.value(), unit);
    }

    fn bandwidth(&mut self, key: &str, bandwidth: BytesPerSecond) {
        self.quantity::<BytesPerSecond>(key, bandwidth.value(), "GB/s");
    }

    fn memory_amount(&mut self, key: &str, amount: Bytes) {
        self.quantity::<Bytes>(key, amount.value(), "GB");
    }

    fn machine(&mut self, cluster: &Cluster) {
        let gpu = &cluster.accelerator;
        if catalog::accelerator(&gpu.name).is_ok() {
            self.text("accelerator", &gpu.name);
        }
        self.stated::<Bytes>("memory", gpu.usable_memory.value(), "GB");
        let bandwidth = gpu.memory_bandwidth.value();
        self.stated::<BytesPerSecond>("memory_bandwidth", bandwidth, "GB/s");
        let peak = |file: &mut Self, key: &str, peak: FlopsPerSecond| {
            file.stated::<FlopsPerSecond>(key, peak.value(), "TFLOP/s");
        };
        peak(self, "peak_bf16", gpu.peak_bf16);
        if let Some(fp8) = gpu.peak_fp8 {
            peak(self, "peak_fp8", fp8);
        }
        self.line("gpus_per_node", &cluster.gpus_per_node.to_string());
        self.bandwidth("intra_node_bandwidth", cluster.intra_node_bandwidth);
        self.bandwidth("inter_node_bandwidth", cluster.inter_node_bandwidth);
        self.text("source", &cluster.calibration.source);
    }

    fn efficiency(&mut self, efficiency: &Efficiency) {
        self.section("efficiency");
        self.number("gemm", efficiency.gemm);
        self.number("flash_attention_1", efficiency.flash_attention_1);
        self.number("flash_attention_2", efficiency.flash_attention_2);
        self.number("memory_bandwidth", efficiency.memory_bandwidth);
        self.duration("ring_hop", efficiency.ring_hop, "us");
        self.number("congestion", efficiency.congestion);
        self.duration("collective_latency", efficiency.collective_latency, "us");
        self.duration(
            "pipeline_hop_latency",
            efficiency.pipeline_hop_latency,
            "us",
        );
        self.number("slowdown", efficiency.slowdown);
    }

    fn calibration(&mut self, calibration: &Calibration) {
        self.section("calibration");
        self.text("kind", calibration.kind.as_str());
        self.number("time_error", calibration.time_error);
        self.number("memory_scale", calibration.memory.scale);
        self.number("memory_shift", calibration.memory.shift);
        self.text("source", &calibration.source);
    }

    fn framework(&mut self, framework: &Framework) {
        self.section("framework");
        self.text("preset", &framework.name);
        self.text("partition", framework.partition.as_str());
        self.text("checkpointing", framework.checkpoint_rule.as_str());
        self.text("fused_rmsnorm", framework.fused_rmsnorm.as_str());
        self.text("usual_attention", framework.usual_attention.as_str());
        self.text("usual_rmsnorm", framework.usual_rmsnorm.as_str());
        self.text(
            "usual_sequence_parallel",
            framework.usual_sequence_parallel.as_str(),
        );
        self.text("source", &framework.source);
    }

    fn memory(&mut self, memory: &MemoryProfile) {
        self.section("framework.memory");
        self.number("gradient_bytes", memory.gradient_bytes);
        self.text("logits", memory.logits.as_str());
        self.number("logit_bytes", memory.logit_bytes);
        self.number("logit_bytes_gathered", memory.logit_bytes_gathered);
        self.number("hidden_bytes", memory.hidden_bytes);
        self.number("gathered_bytes", memory.gathered_bytes);
        self.number("attention_bytes", memory.attention_bytes);
        self.number("norm_bytes", memory.norm_bytes);
        self.number("feed_forward_bytes", memory.feed_forward_bytes);
        self.number("working_bytes", memory.working_bytes);
        self.number("activation_factor", memory.activation_factor);
        self.memory_amount("fixed", memory.fixed);
        self.memory_amount("communicator", memory.communicator);
        self.text("logged_peak", memory.logged_peak.as_str());
    }

    fn speed(&mut self, speed: &SpeedProfile) {
        self.section("framework.speed");
        self.number("elementwise", speed.elementwise);
        self.number("rmsnorm_bytes", speed.rmsnorm_bytes);
        self.number("softmax_bytes_fused", speed.softmax_bytes_fused);
        self.number("softmax_bytes_torch", speed.softmax_bytes_torch);
        self.number("logit_bytes", speed.logit_bytes);
        self.duration("launch", speed.launch, "ms");
        self.duration("launch_unfused", speed.launch_unfused, "ms");
        self.number("launch_recompute", speed.launch_recompute);
        self.number("launch_norm", speed.launch_norm);
        self.duration("micro_batch_overhead", speed.micro_batch_overhead, "ms");
        self.duration("step_overhead", speed.step_overhead, "ms");
        self.number("transfer_exposed", speed.transfer_exposed);
        self.number("bubble", speed.bubble);
        self.number("bubble_zero_1p", speed.bubble_zero_1p);
        self.number("bubble_zero_2p", speed.bubble_zero_2p);
        self.number("bubble_interleaved", speed.bubble_interleaved);
        self.number("reduction_bytes", speed.reduction_bytes);
        self.text("optimizer_work", speed.optimizer_work.as_str());
        self.number("sharded_bytes", speed.sharded_bytes);
        self.duration("sharded_latency", speed.sharded_latency, "us");
        self.number("sharded_norm", speed.sharded_norm);
        self.number("measured_intra_node", speed.measured_intra_node);
        self.number("measured_inter_node", speed.measured_inter_node);
        self.number("tensor_parallel_across", speed.tensor_parallel_across);
    }

    fn discrepancy(&mut self, learned: &Discrepancy) {
        self.section("discrepancy");
        self.number("amplitude", learned.amplitude);
        self.number("length_scale", learned.length_scale);
        self.number("noise", learned.noise);
        let row = |numbers: &[f64]| {
            let numbers: Vec<String> = numbers.iter().map(|x| format!("{}", rounded(*x))).collect();
            format!("[{}]", numbers.join(", "))
        };
        self.line("weights", &row(&learned.weights));
        let points: Vec<String> = learned
            .points
            .iter()
            .map(|point| format!("  {},\n", row(point)))
            .collect();
        self.line("points", &format!("[\n{}]", points.concat()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_six_digits() {
        let check = |value: f64, text: &str| assert_eq!(format!("{}", rounded(value)), text);
        check(0.0, "0");
        check(1.0 / 3.0, "0.333333");
        check(123_456_789.0, "123457000");
        check(1.73, "1.73");
        check(-2.5e-7, "-0.00000025");
        check(0.1 + 0.2, "0.3");
    }
}
