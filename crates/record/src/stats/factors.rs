//! What several things cost each, from sums of them.
//!
//! The one idea: least squares with relative weights, as a line is fitted, for as many factors as
//! there are things: the normal equations, by elimination. Factors that the rows do not tell apart
//! are no answer.

/// A pivot that is so small a part of the row's largest number is none.
const PIVOT: f64 = 1e-9;

/// Fits y = Σ factor·x with weights 1/y². `None` where the rows do not tell the factors apart, or a
/// y is not above zero.
pub fn fit_factors<const N: usize>(rows: &[([f64; N], f64)]) -> Option<[f64; N]> {
    if rows.iter().any(|(_, y)| *y <= 0.0) {
        return None;
    }
    // Each thing is measured by its largest number, so that pivots are of one size.
    let largest = |nth: usize| rows.iter().map(|(x, y)| (x[nth] / y).abs()).fold(0.0, f64::max);
    let scales: [f64; N] = std::array::from_fn(largest);
    if scales.iter().any(|scale| *scale <= 0.0) {
        return None;
    }
    let part = |row: &([f64; N], f64), nth: usize| row.0[nth] / row.1 / scales[nth];
    let mut matrix: [[f64; N]; N] = std::array::from_fn(|i| {
        std::array::from_fn(|j| rows.iter().map(|row| part(row, i) * part(row, j)).sum())
    });
    let mut wanted: [f64; N] = std::array::from_fn(|i| rows.iter().map(|row| part(row, i)).sum());
    for column in 0..N {
        // The matrix is symmetric and never negative: what is left of its diagonal will do.
        let pivot = matrix[column];
        if pivot[column] <= PIVOT * rows.len() as f64 {
            return None;
        }
        for row in (0..N).filter(|row| *row != column) {
            let times = matrix[row][column] / pivot[column];
            for (entry, above) in matrix[row].iter_mut().zip(pivot) {
                *entry -= times * above;
            }
            wanted[row] -= times * wanted[column];
        }
    }
    Some(std::array::from_fn(|nth| wanted[nth] / matrix[nth][nth] / scales[nth]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_found_again_whatever_their_size() {
        let of = |[a, b, c]: [f64; 3]| ([a, b, c], 0.5 * a + 10.0 * b - 3.0 * c);
        let rows = [[2600.0, 200.0, 8.0], [1500.0, 110.0, 3.0], [3100.0, 330.0, 14.0]].map(of);
        let found = fit_factors(&[&rows[..], &[of([18_000.0, 400.0, 40.0])]].concat()).unwrap();
        for (found, wanted) in found.into_iter().zip([0.5, 10.0, -3.0]) {
            assert!((found - wanted).abs() < 1e-6, "{found} {wanted}");
        }
    }

    #[test]
    fn a_relative_error_counts_alike_in_a_large_row_and_in_a_small() {
        let [factor] = fit_factors(&[([1.0], 1.1), ([1000.0], 1000.0)]).unwrap();
        assert!((0.95..1.1).contains(&factor) && factor > 1.02, "{factor}");
    }

    #[test]
    fn what_rows_do_not_tell_apart_is_no_answer() {
        assert_eq!(fit_factors(&[([1.0, 2.0], 3.0), ([2.0, 4.0], 6.0)]), None);
        assert_eq!(fit_factors(&[([1.0, 0.0], 3.0), ([2.0, 0.0], 6.0)]), None);
        assert_eq!(fit_factors(&[([1.0], 0.0)]), None);
        assert_eq!(fit_factors::<1>(&[]), None);
    }
}
