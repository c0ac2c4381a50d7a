//! The settings to launch with.

use maud::{Markup, html};

use super::Page;

pub(super) fn section(page: &Page) -> Markup {
    let Some(launch) = &page.launch else {
        return html! {};
    };
    let framework = launch.framework;
    let settings = match &launch.settings {
        Ok(settings) => settings,
        Err(reason) => {
            let figure = html! {
                p.warning { (reason) }
                p {
                    code { "parlayout export" } " with the instance file in place of this answer plans again under the \
                    rules of " (framework) ", and says what that costs."
                }
            };
            let reading = format!("{framework} cannot run this layout as it is.");
            return super::section("What to run", &reading, &figure);
        }
    };
    let figure = html! {
        pre { code { (launch.command) } }
        p { "What it prints:" }
        pre { code { (settings) } }
    };
    let reading = format!(
        "This command writes the layout as settings of {framework}. Add your data, tokenizer, learning rate and \
         checkpoints; for another framework give its name after --to."
    );
    super::section("What to run", &reading, &figure)
}
