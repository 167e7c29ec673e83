//! The twelve functions of a template, and the environment that they live in.
//!
//! The one idea: a function takes a figure or a list of them and gives the same shape back, so that
//! a sentence about eight tests is no longer than one about one. There is nothing else: no filters,
//! no files, no clock.

use std::sync::Arc;

use minijinja::{
    Environment, Error, ErrorKind,
    value::{Kwargs, Rest, Value, ValueKind},
};

use super::figure::{Both, Figure, Over, Side};
use pagelab_record::verdict::Verdict;

use crate::{Quantity, Unit, gathered::same_order, ratio::TIE};

/// Steps that one sentence may take.
const FUEL: u64 = 20_000;
/// The longest list.
const LIST_MAX: usize = 64;

type Answer = Result<Value, Error>;

fn wrong(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, text.into())
}

/// An environment with the functions, and nothing else.
pub(super) fn environment(both: &Arc<Both>) -> Environment<'static> {
    let mut environment = Environment::empty();
    environment.set_fuel(Some(FUEL));
    // What is shown is escaped where the document leaves, for every form.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let asks = |side: Side| {
        let both = Arc::clone(both);
        move |name: String, over: Kwargs| asked(&both, &name, side, &over)
    };
    environment.add_function("of", asks(Side::Here));
    environment.add_function("published", asks(Side::Published));
    let here = Arc::clone(both);
    environment.add_function("limit", move |name: String| limit(&here, &name));
    let here = Arc::clone(both);
    environment.add_function("ratio", move |one: Value, other: Value| {
        if let Some(number) = plain(&other) {
            return mapped(&one, |one| {
                let all = one.quantity.filter(|_| number > 0.0);
                let mut part = one.derived(all.map(|q| q.times(1.0 / number, q.unit)), &[]);
                part.form.clone_from(&one.form);
                Ok(part)
            });
        }
        paired(&one, &other, |one, other| one.over(other, &here))
    });
    environment.add_function("minus", |one: Value, other: Value| {
        paired(&one, &other, |one, other| {
            let less = one.quantity.zip(other.quantity).map(|(a, b)| Quantity {
                value: a.value - b.value,
                low: a.low - b.high,
                high: a.high - b.low,
                ..a
            });
            let mut difference = one.derived(less, &[other]);
            difference.signed = less.is_some_and(|less| less.unit == Unit::Ns);
            difference
        })
    });
    environment.add_function("share", |one: Value, other: Value| {
        paired(&one, &other, |one, other| {
            let share = one.quantity.zip(other.quantity).filter(|(_, b)| b.value != 0.0);
            let share = share.map(|(a, b)| Quantity::exact(a.value / b.value, Unit::Share));
            one.derived(share, &[other])
        })
    });
    let here = Arc::clone(both);
    environment.add_function("sum", move |what: Value, over: Kwargs| sum(&here, &what, &over));
    let here = Arc::clone(both);
    environment.add_function("count", move |what: Value, word: Option<Value>, over: Kwargs| {
        count(&here, &what, word.as_ref(), &over)
    });
    environment
        .add_function("best", |list: Value, end: Option<String>| best(&list, end.as_deref()));
    environment.add_function("pairs", |here: Value, there: Value| pairs(&here, &there));
    environment.add_function("verdict", |args: Rest<Value>| verdict(&args));
    environment
        .add_function("told", |what: Value, form: Option<String>| told(&what, form.as_deref()));
    environment
}

fn figure(value: &Value) -> Result<Arc<Figure>, Error> {
    value.downcast_object::<Figure>().ok_or_else(|| {
        wrong(format!("a figure is needed, not {}: ask of() or published() for one", value.kind()))
    })
}

/// The items of a list, or the value itself.
fn items(value: &Value) -> Result<Vec<Value>, Error> {
    if value.kind() != ValueKind::Seq {
        return Ok(vec![value.clone()]);
    }
    let all: Vec<Value> = value.try_iter()?.take(LIST_MAX + 1).collect();
    if all.len() > LIST_MAX {
        return Err(wrong(format!("a list has more than {LIST_MAX} items; ask for fewer")));
    }
    Ok(all)
}

fn figures(value: &Value) -> Result<Vec<Arc<Figure>>, Error> {
    items(value)?.iter().map(figure).collect()
}

fn plain(value: &Value) -> Option<f64> {
    (value.kind() == ValueKind::Number).then(|| f64::try_from(value.clone()).ok())?
}

fn mapped(value: &Value, f: impl Fn(&Figure) -> Result<Figure, Error>) -> Answer {
    let all = figures(value)?;
    let mut made = Vec::new();
    for one in &all {
        made.push(Value::from_object(f(one)?));
    }
    Ok(shaped(value.kind() == ValueKind::Seq, made))
}

fn shaped(list: bool, mut made: Vec<Value>) -> Value {
    if list { Value::from(made) } else { made.pop().unwrap_or_default() }
}

/// Item by item; one figure stands for as many as the other list has.
fn paired(one: &Value, other: &Value, f: impl Fn(&Figure, &Figure) -> Figure) -> Answer {
    let (ones, others) = (figures(one)?, figures(other)?);
    let list = one.kind() == ValueKind::Seq || other.kind() == ValueKind::Seq;
    let length = ones.len().max(others.len());
    if (ones.len() != length && ones.len() != 1) || (others.len() != length && others.len() != 1) {
        return Err(wrong(format!(
            "{} figures and {} make no pairs; ask for as many of each, or for one",
            ones.len(),
            others.len()
        )));
    }
    let at = |all: &[Arc<Figure>], index: usize| Arc::clone(&all[index.min(all.len() - 1)]);
    let made = (0..length).map(|index| {
        let (a, b) = (at(&ones, index), at(&others, index));
        let mut made = f(&a, &b);
        made.label.clone_from(if ones.len() == 1 && others.len() > 1 {
            &b.label
        } else {
            &a.label
        });
        Value::from_object(made)
    });
    Ok(shaped(list, made.collect()))
}

/// What a call changes of a figure; a list makes a figure for each of its items.
fn overs(kwargs: &Kwargs) -> Result<(bool, Vec<(String, Over)>), Error> {
    let mut all = vec![(String::new(), Over::new())];
    let mut list = false;
    for name in kwargs.args() {
        let value: Value = kwargs.get(name)?;
        let (values, is_list) = (items(&value)?, value.kind() == ValueKind::Seq);
        if is_list && list {
            return Err(wrong("two lists in one call; write two calls"));
        }
        if is_list {
            list = true;
            all = vec![all[0].clone(); values.len()];
        }
        for (index, (label, over)) in all.iter_mut().enumerate() {
            let value = values[if is_list { index } else { 0 }].to_string();
            if is_list {
                label.clone_from(&value);
            }
            over.insert(name.to_owned(), value);
        }
    }
    Ok((list, all))
}

fn asked(both: &Both, name: &str, side: Side, kwargs: &Kwargs) -> Answer {
    let (list, overs) = overs(kwargs)?;
    let mut made = Vec::new();
    for (label, over) in overs {
        let mut figure = both.figure(name, side, &over).map_err(wrong)?;
        if !label.is_empty() {
            figure.label = label;
        }
        made.push(Value::from_object(figure));
    }
    Ok(shaped(list, made))
}

/// A ceiling or a cost of this machine, by the name that the section on limits gives it.
fn limit(both: &Both, name: &str) -> Value {
    let limits = &both.limits;
    let cost = limits.costs.iter().find(|(known, ..)| *known == name).map(|(_, cost, _)| *cost);
    let level = |name: &str| limits.levels.iter().find(|level| level.name == name);
    let found = cost.or_else(|| match name.split_once(' ')? {
        // The limit's buffer is half of the level.
        (at, "size") => {
            let bytes = level(at)?.buffer_bytes.saturating_mul(2);
            (bytes > 0).then(|| Quantity::exact(bytes as f64, Unit::Count))
        }
        (what, at) => {
            let which = ["clear", "copy", "read"].iter().position(|known| *known == what)?;
            level(at)?.best[which].as_ref().map(|best| best.bandwidth)
        }
    });
    Value::from_object(both.exact(name, found, "pagelab run --suite limits"))
}

fn sum(both: &Both, what: &Value, kwargs: &Kwargs) -> Answer {
    let Some(name) = what.as_str() else {
        let all = figures(what)?;
        let Some((first, rest)) = all.split_first() else { return Err(wrong("a sum of nothing")) };
        let rest: Vec<&Figure> = rest.iter().map(AsRef::as_ref).collect();
        let mut quantity = first.quantity;
        for other in &rest {
            quantity = quantity.zip(other.quantity).map(|(a, b)| a.plus(b));
        }
        return Ok(Value::from_object(first.derived(quantity, &rest)));
    };
    let side: Option<String> = kwargs.get("side")?;
    let side = if side.as_deref() == Some("published") { Side::Published } else { Side::Here };
    let (_, mut all) = overs(kwargs)?;
    let (_, mut over) = all.pop().unwrap_or_default();
    over.remove("side");
    let figure = both.figure(name, side, &over).map_err(wrong)?;
    let all = both.all(name, side, &over).map_err(wrong)?;
    let total = all.into_iter().reduce(Quantity::plus);
    Ok(Value::from_object(figure.derived(total, &[])))
}

/// How many of a list there are, or how many of them have that verdict; by a name, how many cases.
fn count(both: &Both, what: &Value, word: Option<&Value>, kwargs: &Kwargs) -> Answer {
    if let Some(name) = what.as_str() {
        let (_, mut all) = overs(kwargs)?;
        let (_, over) = all.pop().unwrap_or_default();
        return Ok(Value::from(both.all(name, Side::Here, &over).map_err(wrong)?.len()));
    }
    let word = word.and_then(Value::as_str);
    let is = |figure: &&Arc<Figure>| {
        figure.quantity.is_some_and(|quantity| {
            word.is_none_or(|word| word == one_sided(quantity, figure.signed))
        })
    };
    let all = figures(what)?;
    all.iter().filter(|figure| figure.quantity.is_none()).for_each(|figure| figure.note(false));
    Ok(Value::from(all.iter().filter(is).count()))
}

/// The smallest of a list, or the largest.
fn best(list: &Value, end: Option<&str>) -> Answer {
    let all = figures(list)?;
    let largest = match end {
        None | Some("smallest") => false,
        Some("largest") => true,
        Some(other) => {
            return Err(wrong(format!("the best is smallest or largest, not `{other}`")));
        }
    };
    let there = all.iter().filter_map(|figure| Some((figure, figure.quantity?.value)));
    let order = |(_, a): &(_, f64), (_, b): &(_, f64)| a.total_cmp(b);
    let found = if largest { there.max_by(order) } else { there.min_by(order) };
    let found = found
        .map(|(figure, _)| figure)
        .or(all.first())
        .ok_or_else(|| wrong("the best of nothing"))?;
    Ok(Value::from_object(found.as_ref().clone()))
}

/// How many pairs of a list come in the order of another.
fn pairs(here: &Value, there: &Value) -> Answer {
    let (here, there) = (figures(here)?, figures(there)?);
    let both: Vec<_> = here
        .iter()
        .zip(&there)
        .filter_map(|(a, b)| Some((a.label.as_str(), [a.quantity?.value, b.quantity?.value])))
        .collect();
    let (agree, all, wrong) = same_order(&both);
    Ok(minijinja::context! { agree, all, wrong })
}

/// What one number says: a ratio of 1, a difference of nothing.
fn one_sided(quantity: Quantity, signed: bool) -> &'static str {
    if signed {
        return match quantity {
            Quantity { low, .. } if low > 0.0 => "more",
            Quantity { high, .. } if high < 0.0 => "less",
            _ => "open",
        };
    }
    match Verdict::of([quantity.low, quantity.high], TIE) {
        Verdict::Faster => "less",
        Verdict::Same => "tie",
        Verdict::Slower => "more",
        Verdict::Inconclusive | Verdict::NotComparable | Verdict::Invalid => "open",
    }
}

/// `verdict(r)`: less, tie, more or open. `verdict(r, p)`: whether it says what was published.
/// `verdict(q, low, high)`: whether it lies between. Of a list: what all of it says.
fn verdict(args: &[Value]) -> Answer {
    let words: Vec<&'static str> = match args {
        [one] => {
            let says = |figure: &Arc<Figure>| Some(one_sided(figure.shown()?, figure.signed));
            figures(one)?.iter().filter_map(says).collect()
        }
        [one, other] => {
            let says = |(here, there): (&Arc<Figure>, &Arc<Figure>)| {
                let (a, b) = here.shown().zip(there.shown())?;
                Some(match one_sided(a, here.signed) {
                    "open" => "open",
                    says if says == one_sided(b, there.signed) => "agrees",
                    _ => "refuted",
                })
            };
            figures(one)?.iter().zip(&figures(other)?).filter_map(says).collect()
        }
        [one, low, high] => {
            let (Some(low), Some(high)) = (plain(low), plain(high)) else {
                return Err(wrong("verdict() between two numbers: write verdict(q, 1000, 2000)"));
            };
            let says = |quantity: Quantity| match quantity {
                Quantity { low: from, high: to, .. } if from >= low && to <= high => "agrees",
                Quantity { low: from, high: to, .. } if to < low || from > high => "refuted",
                _ => "open",
            };
            figures(one)?.iter().filter_map(|figure| figure.shown()).map(says).collect()
        }
        _ => return Err(wrong("verdict() takes a figure, and what to hold it against")),
    };
    let first = words.first().copied().unwrap_or("open");
    let all = words.iter().all(|word| *word == first);
    Ok(Value::from(match first {
        word if all => word,
        _ if words.contains(&"refuted") => "refuted",
        _ if args.len() == 1 => "mixed",
        _ => "open",
    }))
}

/// A figure in words; of a list each with its name, and what is missing of it is noted.
fn told(what: &Value, form: Option<&str>) -> Answer {
    if what.kind() != ValueKind::Seq {
        return Ok(Value::from(figure(what)?.words(form).unwrap_or_default()));
    }
    let all = figures(what)?;
    let none = all.iter().all(|figure| figure.quantity.is_none());
    let mut said = Vec::new();
    for figure in all {
        if figure.quantity.is_none() {
            figure.note(none);
        } else {
            said.push(format!("{} {}", figure.label, figure.words(form).unwrap_or_default()));
        }
    }
    Ok(Value::from(said.join(", ")))
}
