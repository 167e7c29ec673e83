//! Draws against the weights that they come from.

use super::*;

fn random() -> Random {
    Random::stream(11, 0)
}

fn all() -> Vec<Popularity> {
    vec![
        Popularity::uniform(1000),
        Popularity::zipf(1000, 0.99, &mut random()),
        Popularity::bell(1000, 0.1),
        Popularity::hot(1000, 100, 0.9, Some(&mut random())).rotating(100, 4, 1e6),
        Popularity::hot(1000, 250, 1.0, None),
    ]
}

#[test]
fn weights_add_up_to_one() {
    for popularity in all() {
        let sum: f64 = (0..1000).map(|page| popularity.weight(page)).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}

#[test]
fn pages_are_drawn_by_their_weight() {
    for mut popularity in all() {
        popularity.enter(6e5);
        let mut random = random();
        let mut counts = vec![0_u32; 1000];
        for _ in 0..1_000_000 {
            counts[popularity.draw(&mut random) as usize] += 1;
        }
        for (page, count) in (0..).zip(counts) {
            let expected = popularity.weight(page) * 1e6;
            let error = (f64::from(count) - expected).abs() / expected.max(1.0).sqrt();
            assert!(error < 5.5, "page {page}: {count} for {expected}");
        }
    }
}

#[test]
fn counts_that_are_fixed_are_drawn_without_replacement() {
    let spread = |popularity: &Popularity| {
        let (mut random, mut counts) = (random(), vec![0_u32; 100]);
        (0..900).for_each(|_| counts[popularity.draw(&mut random) as usize] += 1);
        (counts.iter().copied().max().unwrap_or(0), counts.iter().map(|c| c.pow(2)).sum::<u32>())
    };
    // 900 of 100 times 10: no page has more than it has, and one in ten of the chance is left.
    let (most, even) = spread(&Popularity::even(100, 1000.0));
    let (_, uniform) = spread(&Popularity::uniform(100));
    assert!(most <= 10 && even < 8100 + 300 && uniform > 8100 + 400, "{most} {even} {uniform}");
}

#[test]
fn a_hot_set_moves_and_the_counts_know() {
    let popularity = Popularity::hot(10, 1, 0.91, None).rotating(1, 2, 100.0);
    assert!((popularity.expected(0, 0.0, 100.0) - (45.5 + 0.5)).abs() < 1e-9);
    assert!((popularity.expected(1, 40.0, 60.0) - (0.1 + 9.1)).abs() < 1e-9);
    assert!((popularity.expected(5, 0.0, 100.0) - 1.0).abs() < 1e-9);
}

#[test]
fn the_next_access_has_the_mean_of_its_rate() {
    let popularity = Popularity::uniform(100);
    let mut random = random();
    let sum: f64 = (0..10_000).map(|_| popularity.next(7, 500.0, &mut random) - 500.0).sum();
    assert!((sum / 1e4 - 100.0).abs() < 5.0, "{sum}");
    let idle = Popularity::hot(10, 5, 1.0, None);
    assert!(idle.next(9, 0.0, &mut random).is_infinite());
}
