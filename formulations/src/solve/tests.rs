//! Small programs with answers known by hand, and the quirks of the solver.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

/// Items of (profit, weight); the best set within a capacity.
fn knapsack(items: &[(f64, f64)], capacity: f64) -> Model {
    let mut model = Model::new("knapsack", Direction::Maximise);
    let columns: Vec<_> = (0..items.len())
        .map(|i| model.add_binary(format!("x({i})")))
        .collect();
    let with = |pick: fn(&(f64, f64)) -> f64| {
        let columns = columns.clone();
        items
            .iter()
            .zip(columns)
            .map(move |(item, x)| (x, pick(item)))
    };
    model.set_objective("profit", with(|item| item.0), 0.5);
    model.add_row("capacity", with(|item| item.1), Sense::AtMost, capacity);
    model
}

fn solve(model: &Model) -> Outcome<Point> {
    super::solve(model, &SolverOptions::default()).unwrap()
}

#[test]
fn knapsack_by_hand() {
    let model = knapsack(&[(60.0, 10.0), (100.0, 20.0), (120.0, 30.0)], 50.0);
    let outcome = solve(&model);
    assert!(matches!(outcome, Outcome::Optimal { .. }));
    let point = outcome.solution().unwrap();
    assert_eq!(point.values, [0.0, 1.0, 1.0]);
    assert!((point.objective - 220.5).abs() < 1e-9);
    assert_eq!(outcome.statistics().runs, 1);
}

#[test]
fn infeasible_is_an_outcome() {
    let mut model = knapsack(&[(1.0, 1.0)], 5.0);
    let x = ColumnId::clone(&model.objective()[0].0);
    model.add_row("two", [(x, 1.0)], Sense::AtLeast, 2.0);
    assert!(matches!(solve(&model), Outcome::Infeasible { .. }));
    assert!(matches!(
        solve(&model.without_objective()),
        Outcome::Infeasible { .. }
    ));
}

#[test]
fn unbounded_is_an_error() {
    let mut model = Model::new("ray", Direction::Maximise);
    let x = model.add_integer("x", 0.0, f64::INFINITY);
    model.set_objective("profit", [(x, 1.0)], 0.0);
    let error = super::solve(&model, &SolverOptions::default()).unwrap_err();
    assert_eq!(
        error,
        SolveError::Unbounded {
            model: "ray".into()
        }
    );
}

#[test]
fn not_a_number_is_an_error() {
    let model = knapsack(&[(1.0, f64::NAN)], 5.0);
    let error = super::solve(&model, &SolverOptions::default()).unwrap_err();
    assert!(
        matches!(
            error,
            SolveError::Refused { .. } | SolveError::Stopped { .. }
        ),
        "{error}"
    );
}

#[test]
fn models_without_columns_do_not_reach_the_solver() {
    let mut model = Model::new("empty", Direction::Minimise);
    model.set_objective("cost", [], 3.0);
    assert!((solve(&model).solution().unwrap().objective - 3.0).abs() < 1e-12);
    model.add_row("never", [], Sense::AtLeast, 1.0);
    assert!(matches!(solve(&model), Outcome::Infeasible { .. }));
}

#[test]
fn rows_without_terms_count() {
    let mut model = knapsack(&[(1.0, 1.0)], 5.0);
    model.add_row("always", [], Sense::AtMost, 1.0);
    assert!(matches!(solve(&model), Outcome::Optimal { .. }));
    model.add_row("never", [], Sense::AtLeast, 1.0);
    assert!(matches!(solve(&model), Outcome::Infeasible { .. }));
}

#[test]
fn linear_programs_are_optimal_without_a_gap() {
    let mut model = Model::new("linear", Direction::Minimise);
    let x = model.add_continuous("x", f64::NEG_INFINITY, f64::INFINITY);
    model.set_objective("cost", [(x, 2.0)], 0.0);
    model.add_row("floor", [(x, 1.0)], Sense::AtLeast, -1.5);
    let outcome = solve(&model);
    assert!(matches!(outcome, Outcome::Optimal { .. }));
    assert!((outcome.solution().unwrap().objective + 3.0).abs() < 1e-9);
}

#[test]
fn no_time_is_unknown_or_feasible_with_an_honest_bound() {
    // Equal profits and weights leave the solver with much to search.
    let items: Vec<_> = (0..60)
        .map(|i| (f64::from(i % 7 + 20), f64::from(i % 11 + 20)))
        .collect();
    let model = knapsack(&items, 601.0);
    let options = SolverOptions {
        deadline: Deadline::after(Some(std::time::Duration::ZERO)),
        ..SolverOptions::default()
    };
    let best = solve(&model).solution().unwrap().objective;
    match super::solve(&model, &options).unwrap() {
        Outcome::Feasible {
            solution,
            bound,
            gap,
            ..
        } => {
            assert!(solution.objective <= best + 1e-6 && best <= bound + 1e-6);
            assert!((bound - solution.objective - gap).abs() < 1e-6);
        }
        Outcome::Unknown { bound, .. } => {
            assert!(bound.is_none_or(|bound| best <= bound + 1e-6));
        }
        Outcome::Optimal { solution, .. } => assert!((solution.objective - best).abs() < 1e-6),
        Outcome::Infeasible { .. } => panic!("a limit proves nothing"),
    }
}

#[test]
fn many_threads_solve_side_by_side_and_alike() {
    let items: Vec<_> = (0..30)
        .map(|i| (f64::from(i * 7 % 31 + 1), f64::from(i * 5 % 17 + 1)))
        .collect();
    let model = knapsack(&items, 60.0);
    let expected = solve(&model).solution().unwrap().clone();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..5).map(|_| solve(&model)).collect::<Vec<_>>()))
            .collect();
        for thread in threads {
            for outcome in thread.join().unwrap() {
                assert_eq!(outcome.solution(), Some(&expected));
            }
        }
    });
}
