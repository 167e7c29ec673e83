//! What some boots found, as a record holds it.
//!
//! The one idea: the first boot is what is told; the others are asked whether they found the same.
//! Names that are text (functions, stacks, classes, the kernel) are names of tables, as the stacks
//! of `explain/program` are.

use pagelab_bench::{Error, Meter, Witness};
use pagelab_record::{
    Measured, Signed, Table, Unit,
    vocabulary::{Check, arm::OURS, table::STACK},
};
use pagelab_sys::loops::marks::ROUTINE;

use super::{
    classes::Class,
    debugger::Steps,
    fold::Boot,
    log::{Counts, PLACES},
    names::{CLASS, DIFFERS, KERNEL, PLACES_TABLE, counter, series},
};

/// What is told of some boots.
#[derive(Debug)]
pub(super) struct Told {
    first: Boot,
    /// How many boots there were, a machine that was saved among them; how many of them were booted
    /// for this case; and how many found another mode than the first.
    boots: u64,
    booted: u64,
    others: u64,
    /// Why no machine could be saved for other cases.
    unsaved: Option<String>,
    /// What the plugin and a debugger counted of one window.
    pub(super) stepped: Option<[Steps; 2]>,
}

impl Told {
    /// # Errors
    /// When there is no boot, or two kernels.
    pub(super) fn of(all: Vec<Boot>, booted: u64, unsaved: Option<String>) -> Result<Self, Error> {
        let boots = all.len() as u64;
        let mut all = all.into_iter();
        let first = all.next().ok_or_else(|| Error::Case("no machine was booted".to_owned()))?;
        let mut others = 0;
        for boot in all {
            if boot.kernel.release != first.kernel.release {
                let (one, two) = (&first.kernel.release, &boot.kernel.release);
                return Err(Error::Case(format!("the kernel was {one}, then {two}")));
            }
            others += u64::from(boot.mode.total.instructions != first.mode.total.instructions);
        }
        Ok(Self { first, boots, booted, others, unsaved, stepped: None })
    }

    pub(super) fn observe(&self, meter: &mut Meter) {
        meter.observe_all(series::INSTRUCTIONS, Unit::Count, self.first.samples.clone());
    }

    pub(super) fn testify(&self, witness: &mut Witness) {
        let Boot { mode, record, windows, samples, disturbed, interrupted, .. } = &self.first;
        let Boot { in_mode, places, classes, away, .. } = &self.first;
        let taken = samples.len() as u64;
        let sum = |of: fn(&Counts) -> u64| mode.stacks.values().map(of).sum::<u64>();
        let whole = mode.total;
        for ((name, known), counted) in
            Counts::NAMES.into_iter().zip(ROUTINE).zip(self.first.routine.row())
        {
            let claim = format!("{name} of a routine of known length, as it was assembled");
            witness.expect((Check::PathRoutine, &claim), known, counted);
        }
        let by_function = sum(|counts| counts.instructions);
        witness.expect(Check::PathByFunction, whole.instructions, by_function);
        let others = windows - taken - disturbed.values().sum::<u64>();
        witness.expect(Check::PathWindows, 0, others);
        witness.expect(Check::PathBoots, 0, self.others);
        if let Some([counted, stepped]) = self.stepped {
            let both = counted.into_iter().zip(stepped);
            for (whose, (counted, stepped)) in ["kernel", "program"].into_iter().zip(both) {
                let claim =
                    format!("instructions of the {whose} in most windows, as a debugger steps");
                witness.expect((Check::PathStepped, &claim), stepped, counted);
            }
        }
        if let Some(inside) = record.measured() {
            let counter = |name: &str| inside.counter(name).unwrap_or(0);
            let touches = counter("samples_per_repetition") * counter("repetitions");
            witness.expect(Check::PathTouches, touches, *windows);
            hand_on(inside, witness);
        }
        for (name, count) in Counts::NAMES.into_iter().zip(whole.row()) {
            witness.set(&counter::of_mode(name), count);
        }
        witness.set(&counter::of_mode(counter::USER), mode.user.instructions);
        witness.set(counter::SAMPLES, taken);
        witness.set(counter::SAMPLES_IN_MODE, *in_mode);
        let named = classes.iter().filter(|class| class.is_named());
        let named: u64 = named.map(|class| class.samples).sum();
        witness.set(counter::SAMPLES_NAMED, in_mode + named);
        witness.set(counter::BOOTS, self.boots);
        witness.set(counter::RESUMED, self.boots - self.booted);
        let [samples, instructions] = interrupted;
        witness.set(counter::SAMPLES_INTERRUPTED, *samples);
        witness.set(counter::INTERRUPTED, *instructions);
        let [samples, instructions] = away;
        witness.set(counter::SAMPLES_AWAY, *samples);
        witness.set(counter::AWAY, *instructions);
        for (what, count) in disturbed {
            witness.set(&counter::disturbed(what), *count);
        }
        for (stack, counts) in &mode.stacks {
            let name = format!("{STACK}{stack}");
            witness.table(Table::new(name, columns(&Counts::NAMES), [counts.row()]));
        }
        testify_classes(classes, witness);
        let mut sorts = PLACES.to_vec();
        sorts.push("kernel-text");
        let rows = [mode.text_lines, 0].into_iter().enumerate();
        let rows = rows.map(|(of, text)| places.iter().map(move |place| place[of]).chain([text]));
        witness.table(Table::new(PLACES_TABLE, columns(&sorts), rows));
        let name = format!("{KERNEL}{}", self.first.kernel.release);
        witness.table(Table { name, columns: vec![], rows: vec![] });
        self.warn(witness);
    }

    fn warn(&self, witness: &mut Witness) {
        if let Some(why) = &self.unsaved {
            witness.warn(format!("the machine was booted for this case alone, not saved: {why}"));
        }
        if !self.first.has_names {
            witness.warn(
                "the kernel tells no names (CONFIG_KALLSYMS): functions are addresses, and what \
                 interrupted a sample is not told apart"
                    .to_owned(),
            );
        }
        if !self.first.kernel.command.split(' ').any(|word| word == "nokaslr") {
            witness.warn("the kernel chose its address at random: leave kaslr out".to_owned());
        }
    }
}

/// Hands on what the case proved inside, of the arm that faults.
fn hand_on(inside: &Measured, witness: &mut Witness) {
    for claim in inside.witness.iter().filter(|claim| claim.arm == OURS || claim.arm.is_empty()) {
        witness.hand_on(claim);
    }
}

fn columns<'n>(names: &'n [&'n str]) -> impl Iterator<Item = (&'n str, &'n str)> {
    names.iter().map(|name| (*name, "count"))
}

/// What samples do beside the path that most take.
fn testify_classes(classes: &[Class], witness: &mut Witness) {
    for class in classes {
        let [least, middle, most] = class.more;
        let row = [class.samples.signed(), least, middle, most, class.period.signed()];
        let names = ["samples", "least", "middle", "most", "period"];
        witness.table(Table::new(format!("{CLASS}{}", class.name), columns(&names), [row]));
        for (function, difference) in &class.differs {
            let name = format!("{DIFFERS}{}/{function}", class.name);
            witness.table(Table::new(name, columns(&["instructions"]), [[*difference]]));
        }
    }
}
