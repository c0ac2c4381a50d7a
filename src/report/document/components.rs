//! Amounts by component in JSON: keys, order and schema follow from the cost model's components.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Index;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::cost_model::components::{MemoryComponent, StageMemory, StepTime, TimeComponent};
use crate::quantity::{Bytes, Seconds};

/// Declares an object of one number a component, the unit at the end of each key.
macro_rules! amounts {
    ($doc:literal, $name:ident of $whole:ident: $component:ident by $amount:ident in $unit:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name([f64; $component::COUNT]);

        impl $name {
            /// The amounts of `whole` as numbers.
            #[must_use]
            pub fn new(whole: &$whole, number: impl Fn($amount) -> f64) -> Self {
                Self(std::array::from_fn(|index| number(whole[$component::ALL[index]])))
            }

            /// Components and amounts in the order of printing.
            pub fn components(&self) -> impl Iterator<Item = ($component, f64)> + Clone + '_ {
                $component::ALL.iter().copied().zip(self.0)
            }

            fn key(component: $component) -> String {
                format!("{}_{}", component.key(), $unit)
            }
        }

        impl Index<$component> for $name {
            type Output = f64;
            fn index(&self, component: $component) -> &f64 {
                &self.0[component as usize]
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let amounts = self.components();
                serializer.collect_map(amounts.map(|(component, amount)| (Self::key(component), amount)))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let amounts: BTreeMap<String, f64> = BTreeMap::deserialize(deserializer)?;
                let mut read = Self([0.0; $component::COUNT]);
                for (amount, &component) in read.0.iter_mut().zip($component::ALL) {
                    let key = Self::key(component);
                    let left_out = component.is_of_experts().then_some(0.0);
                    let found = amounts.get(&key).copied().or(left_out);
                    *amount =
                        found.ok_or_else(|| D::Error::custom(format!("missing field `{key}`")))?;
                }
                Ok(read)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let property = |&component: &$component| {
                    let mut schema = generator.subschema_for::<f64>();
                    schema.insert("description".to_owned(), component.description().into());
                    (Self::key(component), Value::from(schema))
                };
                let properties: Map<String, Value> = $component::ALL.iter().map(property).collect();
                let required = $component::ALL.iter().filter(|it| !it.is_of_experts());
                let required: Vec<String> = required.map(|&it| Self::key(it)).collect();
                json_schema!({
                    "description": $doc,
                    "type": "object",
                    "properties": properties,
                    "required": required,
                })
            }
        }
    };
}

amounts!(
    "Components of the peak memory of one GPU, in GiB.",
    MemoryComponents of StageMemory: MemoryComponent by Bytes in "gib"
);
amounts!(
    "Time of one optimizer step by component, in seconds: work over all micro-batches, the\nmean of the pipeline stages, then what pipeline, network between replicas and optimizer add.",
    TimeDocument of StepTime: TimeComponent by Seconds in "s"
);
