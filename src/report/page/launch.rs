//! The settings to launch with.

use maud::{Markup, html};

use super::Page;

pub(super) fn section(page: &Page) -> Markup {
    let Some(launch) = &page.launch else {
        return html! {};
    };
    let figure = html! {
        pre { code { (launch.command) } }
        @match &launch.settings {
            Ok(settings) => {
                p { "What it prints:" }
                pre { code { (settings) } }
            }
            Err(reason) => p.warning { (reason) },
        }
    };
    let reading = format!(
        "This command writes the layout as settings of {}. Add your data, tokenizer, learning rate and checkpoints; \
         for another framework give its name after --to.",
        launch.framework
    );
    super::section("What to run", &reading, &figure)
}
