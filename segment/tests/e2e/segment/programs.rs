//! Programs that people run, with segments and without: they say the same.

use std::{path::PathBuf, process::Stdio};

use super::*;
use crate::support::{Beside, is_root};

const SEGMENTS: [&str; 7] = ["segment", "run", "-q", "--heap", "1g", "--mmap", "2g"];

/// Runs a server, with segments or without, and what a client says that talks to it.
fn served(lab: &Lab, flags: Option<&[&str]>, server: &[&str], client: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    if let Some(flags) = flags {
        build_library(PACKAGE);
        words.push(binary().display().to_string());
        words.extend(SEGMENTS.iter().chain(flags).map(|word| (*word).to_owned()));
        words.push("--".to_owned());
    }
    words.extend(server.iter().map(|word| (*word).to_owned()));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(lab.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = Beside(command.spawn().ok()?);
    let came = Command::new("sh").args(["-c", client]).current_dir(lab.path(".")).output().unwrap();
    signal("INT", server.pid());
    server.end();
    let said = String::from_utf8_lossy(&came.stdout).into_owned();
    assert!(came.status.success(), "{said}{}", String::from_utf8_lossy(&came.stderr));
    Some(said)
}

/// The same is said without segments, and with memory that is zeroed by any of these.
fn says_the_same(lab: &Lab, server: &[&str], client: &str) {
    let without = served(lab, None, server, client).unwrap();
    for zero in ["fault", "release"] {
        let with = served(lab, Some(&["--zero", zero]), server, client).unwrap();
        assert_eq!(with, without, "{zero}");
    }
}

#[test]
fn redis_under_load_holds_the_same() {
    let lab = Lab::new();
    if !has("redis-server") || !has("redis-benchmark") {
        return;
    }
    let server = [
        "redis-server",
        "--port",
        "0",
        "--unixsocket",
        "redis.sock",
        "--save",
        "",
        "--enable-debug-command",
        "yes",
    ];
    // A child that saves forks from a process that goes on; the digest is over all keys and values.
    let client = "\
        until redis-cli -s redis.sock ping >/dev/null 2>&1; do sleep 0.05; done
        redis-benchmark -s redis.sock -q -n 20000 -P 8 -d 300 -t lpush,sadd >/dev/null
        redis-cli -s redis.sock flushall >/dev/null
        redis-cli -s redis.sock eval '
            for i = 1, 60000 do redis.call(\"set\", \"k\" .. i, string.rep(i, i % 90)) end
            for i = 1, 60000, 3 do redis.call(\"del\", \"k\" .. i) end
            for i = 1, 30000 do redis.call(\"rpush\", \"l\" .. i % 100, i) end
            return redis.call(\"dbsize\")' 0
        redis-cli -s redis.sock bgsave >/dev/null
        while redis-cli -s redis.sock info persistence | grep -q rdb_bgsave_in_progress:1; do
            sleep 0.05; done
        redis-cli -s redis.sock debug reload
        redis-cli -s redis.sock debug digest";
    says_the_same(&lab, &server, client);
}

#[test]
fn postgres_under_load_holds_the_same() {
    let lab = Lab::new();
    let Some(tools) = postgres() else {
        return skip("there is no PostgreSQL", "apt-get install postgresql");
    };
    let user =
        if is_root() { "setpriv --reuid postgres --regid postgres --clear-groups" } else { "" };
    let shell = |text: &str| {
        let mut sh = Command::new("sh");
        sh.args(["-e", "-c", text]).current_dir(lab.path("."));
        sh.output().unwrap()
    };
    let tools = tools.display();
    let made = shell(&format!(
        "mkdir pg; chmod a+rx .; if [ $(id -u) = 0 ]; then chown postgres pg; fi
         {user} {tools}/initdb -U postgres -D pg/data >/dev/null"
    ));
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr).into_owned();
        return skip(&format!("no database could be made: {why}"), "apt-get install postgresql");
    }
    let server =
        format!("exec {user} {tools}/postgres -D pg/data -h '' -k $PWD/pg -c shared_buffers=64MB");
    let client = format!(
        "sql() {{ {tools}/psql -X -q -A -t -h $PWD/pg -U postgres postgres \"$@\"; }}
         until sql -c 'select 1' >/dev/null 2>&1; do sleep 0.1; done
         sql -c 'drop table if exists t' 2>/dev/null
         sql -c \"create table t as select i, md5(i::text) as h from generate_series(1, 60000) i\"
         sql -c 'create index on t(h)'
         {tools}/pgbench -h $PWD/pg -U postgres -q -i -s 1 postgres >/dev/null 2>&1
         {tools}/pgbench -h $PWD/pg -U postgres -n -c 4 -t 200 postgres >/dev/null 2>&1
         sql -c \"set work_mem = '64MB'; select count(*), sum(i), max(h) from (select * from t \
             order by h) s; select sum(length(a)) from (select string_agg(h, '') a from t group by \
             i % 97) s; select count(*) from pgbench_history where delta is not null\"
         sql -c 'truncate pgbench_history'"
    );
    says_the_same(&lab, &["sh", "-c", &server], &client);
}

/// Where the programs of `PostgreSQL` are.
fn postgres() -> Option<PathBuf> {
    let mut found: Vec<_> = fs::read_dir("/usr/lib/postgresql").ok()?.flatten().collect();
    found.sort_by_key(fs::DirEntry::file_name);
    let tools = found.pop()?.path().join("bin");
    ["initdb", "postgres", "psql", "pgbench"]
        .iter()
        .all(|name| tools.join(name).is_file())
        .then_some(tools)
}

#[test]
fn a_jvm_and_its_collectors_say_the_same() {
    let lab = Lab::new();
    if !has("javac") {
        return;
    }
    lab.file(
        "Work.java",
        "import java.util.*;
         public class Work {
             public static void main(String[] words) throws Exception {
                 long[] sum = new long[4];
                 Thread[] threads = new Thread[4];
                 for (int t = 0; t < 4; t++) { final int own = t; threads[t] = new Thread(() -> {
                     Map<Integer, String> map = new HashMap<>();
                     for (int i = 0; i < 150000; i++) {
                         map.put(i % 40000, \"value \" + i * (own + 1));
                         sum[own] += map.get(i % 40000).hashCode();
                     } }); threads[t].start(); }
                 for (Thread thread : threads) thread.join();
                 System.out.println(Arrays.toString(sum));
             }
         }\n",
    );
    let built = Command::new("javac").arg("Work.java").current_dir(lab.path(".")).output();
    assert!(built.is_ok_and(|built| built.status.success()));
    for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC"] {
        let words = ["java", collector, "-Xmx256m", "Work"];
        let without = plain(&lab, &words);
        for zero in ["fault", "release"] {
            let flags = ["--heap", "1g", "--mmap", "4g", "--zero", zero];
            let (ended, _) = segmented(&lab, &flags, &words);
            assert_eq!(ended.stdout, without.stdout, "{collector} {zero}: {}", ended.stderr);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        }
    }
}
