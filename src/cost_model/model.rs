//! The costs of many combinations of one job.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::Costs;
use super::coefficients::unpiped;
use crate::job::Job;
use crate::layout::Combination;

/// The cost model of one job: combinations that differ in their pipeline alone share all that it does not decide.
#[derive(Debug)]
pub struct CostModel<'a> {
    job: &'a Job,
    known: HashMap<Combination, Costs, FixedState>,
}

impl<'a> CostModel<'a> {
    /// The cost model of a job.
    #[must_use]
    pub fn new(job: &'a Job) -> Self {
        Self {
            job,
            known: HashMap::default(),
        }
    }

    /// What [`Costs::new`] derives.
    #[must_use]
    pub fn costs(&mut self, combination: &Combination) -> Costs {
        let known = self.known.entry(unpiped(combination));
        let known = known.or_insert_with_key(|unpiped| Costs::without_pipeline(self.job, unpiped));
        known.in_pipeline(self.job, combination).countable()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::Instance;
    use crate::layout_space::LayoutSpace;
    use crate::{catalog, fixture, space};

    #[test]
    fn shared_costs_are_those_of_each_combination() {
        let mut instance = fixture::llama_13b();
        check(&instance);
        // Leading dense layers, experts, latent attention, a layer for a further token.
        let network = catalog::model("deepseek-v3").expect("it is in the catalog");
        instance.job.transformer = network;
        instance.space = LayoutSpace::everything_legal(&instance.job);
        check(&instance);
    }

    fn check(instance: &Instance) {
        let mut model = CostModel::new(&instance.job);
        let listed = space::list(instance).combinations;
        for (flagged, _) in listed.iter().step_by(7) {
            let combination = &flagged.combination;
            let own = Costs::new(&instance.job, combination);
            assert_eq!(model.costs(combination), own, "{combination:?}");
        }
        assert!(model.known.len() < listed.len() / 7);
    }
}
