//! One measured run as a fit sees it.

use crate::cluster::{Cluster, DIMENSIONS};
use crate::cost_model::components::StageMemory;
use crate::cost_model::discrepancy;
use crate::cost_model::{self, Costs, flops};
use crate::figures::Seen;
use crate::job::Job;
use crate::laboratory::runs::{self, Modelled, Place, Run, Setup, Skip, Stated, Status};
use crate::quantity::{Bytes, Seconds};

/// One measured run as a fit sees it.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Where the run stands.
    pub place: Place,
    /// Job and layout.
    pub modelled: Modelled,
    /// Figures that the row states for itself.
    pub stated: Stated,
    /// Measured step time, where it is representative.
    pub step_time: Option<Seconds>,
    /// Measured peak memory.
    pub peak: Option<Bytes>,
    /// The stage (from 0) whose peak was measured; `None` for the fullest.
    pub peak_stage: Option<u32>,
    /// How the run ended.
    pub status: Status,
}

/// The step time behind a stated utilisation, where the vocabulary that it counts is stated too.
fn from_utilisation(run: &Run, job: &Job) -> Option<Seconds> {
    let mfu = run.mfu.filter(|&mfu| mfu > 0.0)?;
    let has_vocabulary = run.vocabulary.is_some_and(|vocabulary| vocabulary > 0);
    // A row without a shape names a preset, whose vocabulary is known.
    (has_vocabulary || run.layers.is_none()).then_some(())?;
    let one = Seconds::new(1.0);
    Some(one * (flops::utilisation(job, one).value() / mfu))
}

impl Observation {
    /// The run on this cluster under this framework.
    ///
    /// # Errors
    ///
    /// The reason why the row cannot be modelled.
    pub fn new(run: &Run, setup: &Setup) -> Result<Self, Skip> {
        let modelled = runs::model(run, setup)?;
        let ran = run.status == Status::Ok;
        let step_time = run
            .step_time
            .filter(|&time| time > 0.0)
            .map(Seconds::new)
            .or_else(|| from_utilisation(run, &modelled.job))
            .filter(|_| ran && run.timing_usable);
        let peak = run.peak_memory.filter(|&peak| ran && peak > 0.0);
        Ok(Self {
            place: run.place(),
            stated: Stated::of(run),
            step_time,
            peak: peak.map(Bytes::from_gib),
            peak_stage: modelled.measured_stage(run),
            // Without a peak it says nothing of memory where nobody knows what it kept.
            status: match modelled.unstated {
                Some(_) if peak.is_none() => Status::Other,
                _ => run.status,
            },
            modelled,
        })
    }

    /// The job of the run with the figures of this cluster and framework.
    #[must_use]
    pub fn job(&self, setup: &Setup) -> Job {
        let own = &self.modelled.job.cluster;
        let mut job = Job {
            cluster: Cluster {
                gpus: own.gpus,
                gpus_per_node: own.gpus_per_node,
                nvlink_domain: own.nvlink_domain,
                ..setup.cluster.clone()
            },
            framework: setup.framework.clone(),
            ..self.modelled.job.clone()
        };
        self.stated.apply(&mut job.cluster, &mut job.framework);
        job
    }

    /// The coefficients of the run's cell.
    #[must_use]
    pub fn costs(&self, job: &Job) -> Costs {
        Costs::exact(job, &self.modelled.layout.combination)
            .with_vocabulary(self.modelled.vocabulary)
    }

    /// Predicted step time.
    #[must_use]
    pub fn predicted_time(&self, job: &Job) -> Seconds {
        cost_model::duration(&self.costs(job), &self.modelled.layout.stages)
    }

    /// Predicted peak of the stage that was measured, and of the fullest.
    #[must_use]
    pub fn predicted_peaks(&self, job: &Job) -> (Bytes, Bytes) {
        let costs = self.costs(job);
        let memory = cost_model::memory_use(job, &costs, &self.modelled.layout.stages);
        let fullest = memory.peak();
        let stage = |index: u32| memory.stages.get(index as usize);
        let stage = self.peak_stage.and_then(stage);
        let counted = job.framework.memory.logged_memory;
        let logged = |stage: &StageMemory| stage.logged(counted);
        let measured = stage.map_or_else(|| memory.logged(counted), logged);
        (measured, fullest)
    }

    /// What was measured, in seconds or bytes.
    pub(super) fn measured(&self, seen: Seen) -> Option<f64> {
        match seen {
            Seen::InTime => self.step_time.map(Seconds::value),
            Seen::InMemory => self.peak.map(Bytes::value),
        }
    }

    /// What is predicted of what was measured, in seconds or bytes; of memory also the fullest stage.
    pub(super) fn predicted(&self, seen: Seen, job: &Job) -> [f64; 2] {
        match seen {
            Seen::InTime => [self.predicted_time(job).value(); 2],
            Seen::InMemory => <[Bytes; 2]>::from(self.predicted_peaks(job)).map(Bytes::value),
        }
    }

    /// Whether the run tells of step times or of memory.
    pub(super) fn tells(&self, seen: Seen) -> bool {
        match seen {
            Seen::InTime => self.step_time.is_some(),
            Seen::InMemory => self.status != Status::Other,
        }
    }

    /// Where the run lies among others.
    #[must_use]
    pub fn features(&self) -> [f64; DIMENSIONS] {
        discrepancy::features_of(&self.modelled.job, &self.modelled.layout)
    }

    /// Whether two runs are alike in all that the cost model knows.
    #[must_use]
    pub fn is_alike(&self, other: &Self) -> bool {
        let (one, two) = (&self.modelled, &other.modelled);
        one.layout == two.layout
            && one.vocabulary == two.vocabulary
            && self.stated == other.stated
            && one.job.workload == two.job.workload
            && one.job.cluster.gpus == two.job.cluster.gpus
            && one.job.cluster.gpus_per_node == two.job.cluster.gpus_per_node
            && one.job.cluster.nvlink_domain == two.job.cluster.nvlink_domain
            && one.job.transformer == two.job.transformer
    }
}
