//! Things in the order in which they first came: each once, or with all that goes with it.

/// Each of them once.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    grouped(all.into_iter().map(|one| (one, ()))).into_iter().map(|(one, _)| one).collect()
}

/// What has the same key, together.
pub fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// How many pairs of named numbers come in the same order by both, of how many, and which do not.
pub fn same_order(all: &[(&str, [f64; 2])]) -> (usize, usize, String) {
    let (mut agree, mut pairs, mut wrong) = (0, 0, Vec::new());
    for (at, (one, [a, b])) in all.iter().enumerate() {
        for (other, [c, d]) in &all[at + 1..] {
            pairs += 1;
            if (a < c) == (b < d) {
                agree += 1;
            } else {
                wrong.push(format!("{one} and {other}"));
            }
        }
    }
    (agree, pairs, wrong.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_stands_where_the_first_of_it_came() {
        let all = [("b", 1), ("a", 2), ("b", 3)];
        assert_eq!(grouped(all), [("b", vec![1, 3]), ("a", vec![2])]);
        assert_eq!(distinct(all.map(|(key, _)| key)), ["b", "a"]);
    }
}
