#!/usr/bin/env python3
"""stoker bench: commands that sleep and print, whose time and figures are known; what cannot be is refused.

usage: test_bench.py STOKER WORK_FOLDER
"""
import csv
import json
import os
import shutil
import sys

from program import STOKER, accepted, begin, check, end, refused, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "watch"))
import meter  # noqa: E402: the path comes first

QUICK = ["--seconds", "20", "--runs", "6", "--most-runs", "6", "--warmup", "1"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# What the second case of "net" calls its one replica: both cases run the same three steps, of whose noise no bound is known, and an
# efficiency over 150 %, which is refused, is so out of reach.
CALLED = 64


def result(folder):
    with open(f"{folder}/result.json") as f:
        return json.load(f)


def a_time():
    accepted(["bench", *QUICK, "--out", "one", "--", "sleep", "0.05"], "median", "wrote     one")
    r = result("one")
    case, = r["cases"]
    s = case["summary"]
    check(case["unit"] == "s" and case["better"] == "less" and case["command"] == ["sleep", "0.05"], f"the case: {case}")
    check(s["median"]["value"] >= 0.05 and s["median"]["low"] <= s["median"]["value"] <= s["median"]["high"],
          f"the interval holds the median, and no sleep is too short: {s['median']}")
    runs = [x for x in case["runs"] if not x["warm_up"]]
    check(len(runs) == 6 and s["warm_up_runs"] == len(case["runs"]) - 6 and s["warm_up_runs"] >= 1, "all runs are kept")
    counted = sorted(x["figure"] for x in runs if x["counted"])
    n = len(counted)
    check(n == s["counted_runs"] and abs(s["median"]["value"] - (counted[(n - 1) // 2] + counted[n // 2]) / 2) < 1e-9,
          "the median is that of the counted runs")
    check(s["user_s"] + s["system_s"] < s["wall_s"], "a sleep takes no processor")
    check(r["machine"]["cores"] >= 1 and r["machine"]["kernel"] and r["before"]["runnable_threads"] is not None,
          f"conditions are recorded: {r['machine']}")
    rows = list(csv.DictReader(open("one/runs.csv")))
    check(len(rows) == len(case["runs"]) and float(rows[-1]["figure"]) >= 0.05, "runs.csv has a line a run")
    text = open("one/report.md").read()
    check("| [sleep 0.05](runs.csv) |" in text and "Measuring ended when" in text, f"report.md has the case, and how it ended: {text}")
    check(set(json.load(open("one/hashes.json"))) == {"result.json", "runs.csv", "report.md"}, "files have hashes")
    refused(["bench", *QUICK, "--out", "one", "--", "sleep", "0.01"], 1, "one")


def an_end_by_entropy():
    """Ten sleeps that are alike to a twentieth tell no more; ones of two kinds take longer."""
    steady = ["--precision", "50%", "--seconds", "60", "--until", "entropy", "--count-marked"]
    accepted(["bench", *steady, "--out", "calm", "--pattern", "([0-9.]+)", "--unit", "x/s", "--", "sh", "-c",
              "sleep 0.02; echo 5"], "more runs told little")
    r = result("calm")
    check(r["ended"] == "entropy" and r["cases"][0]["summary"]["outliers"] == 0, f"it ended so: {r['ended']}")
    wild = "echo $((STOKER_BENCH_RUN * 7919 % 101 + 1))"
    accepted(["bench", *steady[2:], "--precision", "1%", "--most-runs", "60", "--out", "wild", "--pattern", "([0-9.]+)", "--unit", "x/s",
              "--", "sh", "-c", wild])
    check(result("wild")["ended"] == "runs", "a figure that is always another one goes on")


def a_figure():
    script = "echo 3 images/s; echo '1,234.5 images/s (12 ms)'"
    accepted(["bench", *QUICK, "--out", "figure", "--pattern", "([0-9.,]+) images/s", "--unit", "images/s", "--", "sh", "-c",
              script], "1,234")
    case, = result("figure")["cases"]
    check(case["better"] == "more" and case["summary"]["median"]["value"] == 1234.5, f"the last number: {case['summary']}")
    pattern = ["--pattern", "([0-9.]+) images/s", "--unit", "images/s"]
    refused(["bench", *QUICK, "--pattern", "x", "--", "true"], 2, "needs '--unit'")
    refused(["bench", *QUICK, "--pattern", "(", "--unit", "x", "--", "true"], 1, "is no pattern")
    refused(["bench", *QUICK, *pattern, "--", "echo", "4 frames/s"], 1, "no number that the pattern finds", "4 frames/s",
            lines=None)
    refused(["bench", *QUICK, "--pattern", "([0-9.,]+) images/s", "--unit", "images/s", "--", "echo", "1,5 images/s"], 1,
            "no number that the pattern finds", lines=None)
    refused(["bench", *QUICK, *pattern, "--peak", "100", "--", "echo", "101 images/s"], 1, "no more than 100 is possible")
    refused(["bench", *QUICK, *pattern, "--", "echo", "0 images/s"], 1, "cannot be")


def failures():
    refused(["bench", *QUICK, "--", "sh", "-c", "echo it broke >&2; exit 3"], 1, "exit code 3", "it broke", lines=None)
    refused(["bench", *QUICK, "--", "no-such-program"], 1, "cannot start 'no-such-program'")
    refused(["bench", *QUICK, "--", "sh", "-c", "kill -9 $$"], 1, "ended by signal 9", lines=None)
    accepted(["bench", *QUICK, "--out", "fails", "--ignore-failure", "--", "false"])
    refused(["bench", "sleep", "1"], 2, "put '--' before a command")
    refused(["bench"], 2, "needs one of")
    refused(["bench", "--compare", "true"], 2, "go together")
    refused(["bench", "--precision", "0", "--", "true"], 2, "--precision")
    refused(["bench", "--better", "more", "--", "true"], 2, "of times less is better")
    refused(["bench", "--runs", "1", "--most-runs", "1", "--peak", "40", "--", "true"], 1, "no less than 40 is possible")
    refused(["bench", "--until", "noon", "--", "true"], 2, "interval or entropy")
    check(not os.path.exists("runs"), "what failed leaves no folder")
    # What is there already is no matter of minutes later.
    os.makedirs("taken/by/me")
    for out in "taken", "taken/by/me/../..", "/proc/none/x":
        refused(["bench", *QUICK, "--out", out, "--", "touch", "it-ran"], 1, out.split("/")[0] or "/proc")
    check(not os.path.exists("it-ran") and os.listdir("taken") == ["by"], "it is refused before anything is run")
    # What was measured before a command failed is kept.
    refused(["bench", "--seconds", "20", "--runs", "9", "--warmup", "0", "--out", "late", "--compare", "true", "--with", "test $STOKER_BENCH_RUN -lt 5"], 1,
            "case 'test $STOKER_BENCH_RUN -lt 5'", "exit code 1", lines=None)
    late = result("late")
    check("measuring ended when" in run("bench", "submit", "--check", "late").stdout, "what failed cannot be published")
    check(late["ended"] == "failed" and len(late["cases"][1]["runs"]) == 4, f"four runs: {late['ended']}, {late['cases'][1]}")
    refused(["bench", "--seconds", "20", "--runs", "9", "--warmup", "0", "--out", "odd", "--peak", "3", "--pattern", "([0-9]+)", "--unit", "x/s",
             "--", "sh", "-c", "echo $STOKER_BENCH_RUN"], 1, "no more than 3 is possible")
    check(not os.path.exists("odd"), "of what cannot be nothing is kept")
    for unit, better in ("hours", "less"), ("minutes", "less"), ("milliseconds", "less"), ("hits", "more"), ("days/epoch", "less"):
        accepted(["bench", *QUICK, "--out", f"by-{unit[:4]}", "--pattern", "([0-9]+)", "--unit", unit, "--", "echo", "3"])
        check(result(f"by-{unit[:4]}")["cases"][0]["better"] == better, f"of {unit} {better} is better")
    accepted(["bench", "--seconds", "20", "--runs", "6", "--most-runs", "6", "--ignore-failure", "--out", "ignored", "--", "false"])
    check("commands were allowed to fail" in run("bench", "submit", "--check", "ignored").stdout, "nor can what may fail")
    accepted(["bench", "--seconds", "1", "--warmup", "0", "--out", "short", "--", "sleep", "0.4"], "10 runs would take --seconds")
    accepted(["report", "--bench", "short", "--out", "short.html"])
    check("Too few runs for an interval" in open("short.html").read(), "the page says so, too")
    with open("left.yaml", "w") as f:
        f.write("name: left\nprepare: ['true']\ncases: [{name: a, run: 'true'}, {name: b, run: 'true', cores: 4000}, {name: c, run: 'true', devices: 60}]\n")
    accepted(["bench", *QUICK, "--suite", "left.yaml", "--out", "left"], "left out  b: wants 4000 cores", "left out  c: wants 60 devices")
    check(result("left")["left_out"] == ["b: wants 4000 cores", "c: wants 60 devices"], "the result has what was left out")
    accepted(["report", "--bench", "left", "--out", "left.html"], "left.html")
    check("Left out: b: wants 4000 cores" in open("left.html").read() and "Left out: b: wants 4000 cores" in open("left/report.md").read(),
          "the page and the report, too")
    with open("left.yaml", "w") as f:
        f.write("name: left\nprepare: ['false']\ncases: [{name: a, run: 'true'}]\n")
    refused(["bench", *QUICK, "--suite", "left.yaml"], 1, "'prepare', 'false'", "exit code 1")


def comparisons():
    for _ in range(3):  # a machine that stands still for half a second does it in one try, not in three
        shutil.rmtree("pair", ignore_errors=True)
        done = accepted(["bench", "--seconds", "40", "--runs", "8", "--most-runs", "8", "--count-marked", "--out", "pair",
                         "--compare", "sleep 0.02", "--with", "sleep 0.4", "--with", "sleep  0.02"])
        r = result("pair")
        slow, same = r["comparisons"]
        if slow["share_better"] == 0 and slow["verdict"] == "worse" and abs(same["change"]["value"]) < 0.5:
            break
    check(slow["verdict"] == "worse" and slow["paired"] and slow["pairs"] == 8 and slow["change"]["value"] > 1,
          f"twenty times as long is slower: {slow}")
    check(slow["share_better"] == 0, "no run of it is better")
    check(abs(same["change"]["value"]) < 0.5, f"the same is about the same: {same}")
    check("'sleep 0.4' is slower than 'sleep 0.02'" in done.stdout, f"it is said: {done.stdout}")
    rounds = [[x["round"] for x in c["runs"] if not x["warm_up"]] for c in r["cases"]]
    check(rounds == [list(range(8))] * 3, "each round has each command once")
    at = sorted((x["at_s"], i) for i, c in enumerate(r["cases"]) for x in c["runs"])
    check(len({tuple(i for _, i in at[k:k + 3]) for k in range(0, len(at), 3)}) > 1, "the order differs from round to round")
    accepted(["bench", *QUICK, "--count-marked", "--out", "apart", "--", "sleep", "0.4"])
    accepted(["bench", *QUICK, "--count-marked", "--out", "before", "--", "sleep", "0.02"])
    accepted(["bench", "compare", "before", "apart"], "is slower than", "measured apart")
    accepted(["bench", "compare", "apart", "before"], "is faster than")
    accepted(["bench", "compare", "before", "before"], "no difference shown")
    told = json.loads(accepted(["bench", "compare", "--json", "before", "apart"]).stdout)
    check(told["comparisons"][0]["verdict"] == "worse", f"and in JSON: {told}")
    row = told["comparisons"][0]
    check(row["case"] == "sleep 0.02 -> sleep 0.4", f"both commands are named: {row}")
    check(row["from_raw"] == "before/runs.csv" and row["to_case"] == 0 and row["unit"] == "s" and row["to_median"] > row["from_median"],
          f"with the places of the raw runs: {row}")
    table, = csv.DictReader(accepted(["bench", "compare", "--csv", "before", "apart"]).stdout.splitlines())
    check(table["verdict"] == "worse" and float(table["change"]) > 1 and table["to_raw"] == "apart/runs.csv" and table["unit"] == "s",
          f"and in CSV: {table}")
    lines = accepted(["bench", "compare", "--markdown", "before", "apart", "before"]).stdout.splitlines()
    check(len(lines) == 4 and "](apart/runs.csv) |" in lines[2] and lines[2].endswith("| worse |") and
          lines[3].endswith("| no difference shown |"), f"and in Markdown, each with the first: {lines}")
    refused(["bench", "compare", "--csv", "--json", "before", "apart"], 2, "one goes at a time")
    refused(["bench", "compare", "before", "figure"], 1, "in images/s", lines=None)
    refused(["bench", "compare", "before"], 2, "two results")
    with open("other.json", "w") as f:
        f.write('{"schema": "else"}')
    refused(["bench", "compare", "before", "other.json"], 1, "no result of 'stoker bench'")
    damaged = result("apart")
    damaged["cases"][0]["runs"][-1]["figure"] = -1
    with open("damaged.json", "w") as f:
        json.dump(damaged, f)
    refused(["bench", "compare", "before", "damaged.json"], 1, "a figure that cannot be", lines=None)


def played_conditions():
    """The kernel's count of cuts by heat, played. Where all runs have them the result says that it was disturbed."""
    heat = "over/sys/devices/system/cpu/cpu0/thermal_throttle"
    os.makedirs(heat)
    os.makedirs("over/proc")
    with open("over/proc/stat", "w") as f: # nobody else does anything
        f.write("cpu  10 20 30 1000 5 6 7 8 0 0\ncpu0 5 10 15 500 2 3 3 4 0 0\ncpu1 5 10 15 500 3 3 4 4 0 0\nprocs_running 1\n")
    with open(f"{heat}/core_throttle_count", "w") as f:
        f.write("0\n")
    with open("grow.sh", "w") as f:
        f.write(f"n=$(cat {heat}/core_throttle_count); echo $((n + 1)) > {heat}/core_throttle_count\n")
    accepted(["bench", *QUICK, "--over", "over", "--out", "hot", "--", "sh", "grow.sh"], "heat", "disturbed")
    r = result("hot")
    check(r["disturbed"] and r["cases"][0]["summary"]["marks"]["heat"] == 6, f"each run is marked: {r['cases'][0]['summary']}")
    # Every second run alone: those are left out.
    with open("grow.sh", "w") as f:
        f.write(f"i=$(($(cat turn 2>/dev/null || echo 0) + 1)); echo $i > turn; [ $((i % 3)) = 0 ] || exit 0\n"
                f"n=$(cat {heat}/core_throttle_count); echo $((n + 1)) > {heat}/core_throttle_count\n")
    done = accepted(["bench", "--seconds", "20", "--runs", "12", "--most-runs", "12", "--warmup", "0", "--over", "over",
                     "--out", "warm", "--", "sh", "grow.sh"], "heat, 4")
    r = result("warm")
    runs = r["cases"][0]["runs"]
    # Another clock by the probe may be seen here, too, and then all may count.
    check([x["number"] for x in runs if "heat" in x["marks"]] == [3, 6, 9, 12], "four of twelve are marked")
    check(r["disturbed"] or ("not counted" in done.stdout and not any(x["counted"] and x["marks"] for x in runs)),
          "and are left out")


def played_gpu():
    """The played NVML, whose GPU has less power than it wants: each run is marked; without that none is."""
    library = f"{os.path.dirname(STOKER)}/tests/libfake_nvml.so"
    if not os.path.exists(library):
        print("SKIP the played GPU: its library is not built")
        return
    meter.make("meter")
    for limit, is_slow in ("60", True), ("700", False):
        env = {**os.environ, "FAKE_NVML_METER": os.path.abspath("meter"), "FAKE_NVML_LIMIT": limit}
        accepted(["bench", *QUICK, "--nvml", library, "--out", f"gpu{limit}", "--", "sleep", "0.05"], env=env)
        r = result(f"gpu{limit}")
        check(len(r["machine"]["gpus"]) == 1 and r["before"]["gpu_power_w"] > 0, f"there is a GPU: {r['machine']['gpus']}")
        check(r["machine"]["gpu_modes"] == ["0: ECC on, persistence mode off"] and "oneDNN" in r["machine"]["libraries"][0],
              f"its modes, and what computes: {r['machine']}")
        check((r["cases"][0]["summary"]["marks"].get("gpu_slow", 0) == 6) == is_slow, f"limit {limit}: {r['cases'][0]['summary']}")


def submission():
    """A result that was written undisturbed passes; one that somebody has touched does not."""
    done = run("bench", "submit", "--check", "one")
    problems = [line for line in done.stdout.splitlines() if "disturbed" not in line]
    check(done.returncode == (1 if result("one")["disturbed"] else 0) and (done.returncode == 0 or not problems),
          f"a fresh result: {done.stdout} {done.stderr}")
    refused(["bench", "submit", "one"], 2, "--check")
    touched = result("one")
    touched["cases"][0]["summary"]["median"]["value"] *= 0.9
    [run for run in touched["cases"][0]["runs"] if run["counted"]][-1]["counted"] = False
    touched["machine"]["processor"] = None
    shutil.copytree("one", "touched")
    with open("touched/result.json", "w") as f:
        json.dump(touched, f)
    done = run("bench", "submit", "--check", "touched")
    check(done.returncode == 1 and all(part in done.stdout for part in (
        "changed after it was written", "does not follow from its runs", "'processor' is not told", "another number of runs"))
        and (result("one")["disturbed"] or "no run of its round has a mark" in done.stdout), f"a touched result: {done.stdout}")
    refused(["bench", "submit", "--check", "nowhere"], 1, "nowhere")
    # Whatever condition the schema requires: without it the result is not complete.
    with open(f"{ROOT}/docs/bench-schema.json") as f:
        wanted = json.load(f)
    places = [(lambda r: r["machine"], wanted["properties"]["machine"]["required"]), (lambda r: r["settings"], wanted["properties"]["settings"]["required"]),
              (lambda r: r["before"], wanted["definitions"]["reading"]["required"]), (lambda r: r["after"], wanted["definitions"]["reading"]["required"]),
              (lambda r: r["cases"][0]["runs"][-1]["during"], wanted["definitions"]["during"]["required"])]
    for place, keys in places:
        lacking = result("one")
        for key in keys:
            del place(lacking)[key]
        with open("touched/result.json", "w") as f:
            json.dump(lacking, f)
        said = run("bench", "submit", "--check", "touched").stdout
        check(all(f"'{key}'" in said for key in keys), f"{keys} are missing, and it is said: {said}")


def suite():
    with open("mine.yaml", "w") as f:
        f.write("name: mine\nseconds: 20\nruns: 5\nfiles: {text: 'some words'}\nprepare: ['cp {work}/text {work}/copy']\n"
                "cases:\n  - {name: reading, run: 'cat {work}/copy'}\n"
                "  - {name: memory, run: '{stoker} bench part memory 1 --seconds 0', pattern: '^([0-9.,]+) ', unit: GB/s}\n"
                "  - {name: file, run: \"echo '{\\\"a\\\": {\\\"b\\\": 5}}' > {work}/r.json\", file: '{work}/r.json', key: a.b, unit: x/s}\n")
    accepted(["bench", "--suite", "mine.yaml", "--most-runs", "5", "--out", "suite"], "reading", "GB/s")
    cases = result("suite")["cases"]
    accepted(["report", "--bench", "suite", "pair", "--out", "page.html"], "page.html")
    page = open("page.html").read()
    check("sh -c 'echo '\\''{&quot;a&quot;" in page, "a command is shown as it could be typed")
    check(all(word in page for word in ("Which is faster", "Each run", "The machine", "sleep 0.4")), "and what was found")
    refused(["report", "--bench", "nowhere", "--out", "page.html"], 1, "nowhere")
    refused(["report", "--bench", "suite", "--out", "mine.yaml"], 1, "mine.yaml")
    check([c["name"] for c in cases] == ["reading", "memory", "file"] and cases[0]["unit"] == "s", f"the cases: {cases}")
    check(cases[2]["summary"]["median"]["value"] == 5, "a figure from a file")
    check(not result("suite")["comparisons"], "different things are not compared")
    work = cases[0]["command"][1].rsplit("/", 1)[0]
    check(not os.path.exists(work), "the working folder is gone")
    accepted(["bench", "--list"], "quick", "system", "data", "train", "quality", "scaling")
    refused(["bench", "quikc"], 2, "there is no suite 'quikc'; did you mean 'quick'?")
    refused(["bench", "quick", "--unit", "x"], 2, "a suite says itself")
    refused(["bench", "quick", "--better", "more"], 2, "a suite says itself")
    refused(["bench", "cots", "x"], 2, "did you mean 'cost'?")
    refused(["bench", "quick", "--device", "nope"], 1, "no device 'nope'", "stoker devices")
    with open("bad.yaml", "w") as f:
        f.write("name: bad\ncases:\n  - {name: a, run: 'true', pattern: x}\n")
    refused(["bench", "--suite", "bad.yaml"], 1, "bad.yaml:3:5", "needs its 'unit'")
    with open("bad.yaml", "w") as f:
        f.write("name: bad\ncases:\n  - {name: a, run: 'cat {wrok}/x'}\n")
    refused(["bench", "--suite", "bad.yaml"], 1, "bad.yaml:3:", "did you mean '{work}'?")
    for head, cases, words in (("x/../y", ["name: a"], "a name that a folder can have"), ("bad", ["name: a", "name: a"], "two cases 'a'"),
                               ("bad", ["name: a, limit: link"], "goes with the unit GB/s"), ("bad", ["name: a, precision: f77"], "f77")):
        with open("bad.yaml", "w") as f:
            f.write(f"name: {head}\ncases:\n" + "".join(f"  - {{{case}, run: 'true'}}\n" for case in cases))
        refused(["bench", "--suite", "bad.yaml"], 1, "bad.yaml:", words)
    with open("bad.yaml", "w") as f:
        f.write("name: bad\ncases:\n  - {name: speed, run: \"echo '{}' > {work}/r.json\", file: '{work}/r.json', key: a, unit: x/s}\n")
    refused(["bench", "--suite", "bad.yaml"], 1, "case 'speed': ", "has no number 'a'")


def tables():
    """The tables of report --bench: each row with its figures and the place of its raw runs, seen from the table's folder."""
    os.makedirs("tables", exist_ok=True)
    for ending in "md", "csv", "json":
        accepted(["report", "--bench", "net", "apart", "before", "--out", f"tables/t.{ending}"], f"t.{ending}")
        accepted(["report", "--bench", "net", "apart", "before", "--out", f"tables/t.{ending}"])  # one of its own is replaced
        with open(f"tables/other.{ending}", "w") as f:
            f.write("something else")
        refused(["report", "--bench", "net", "--out", f"tables/other.{ending}"], 1, f"other.{ending}")
    refused(["report", "--bench", "net", "--out", "tables/t.txt"], 1, "a page ends in .html, and a table in .md, .csv or .json")
    accepted(["report", "--bench", "pair", "--out", "tables/pair.md"])
    accepted(["report", "--bench", "pair", "--out", "tables/pair.csv"])
    text, rows = open("tables/pair.md").read(), list(csv.DictReader(open("tables/pair.csv")))
    found = result("pair")["comparisons"][0]
    check("Which is faster, run in turns:" in text and "slower than" in text, f"what was found in turns: {text}")
    check(rows[1]["compared_with"] == rows[0]["case"] and rows[1]["verdict"] == found["verdict"] == "worse" and rows[0]["verdict"] == ""
          and abs(float(rows[1]["change"]) / found["change"]["value"] - 1) < 1e-9 and int(float(rows[1]["pairs"])) == found["pairs"], f"and in CSV: {rows}")
    refused(["report", "--bench", "net", "--out", "tables/t.csv", "--png", "t.png"], 2, "a table is no page")
    rows = list(csv.DictReader(open("tables/t.csv")))
    told = json.load(open("tables/t.json"))
    check(told["schema"] == "stoker-bench-table-1" and len(told["rows"]) == len(rows) == 6, f"a row a case: {told['rows']}")
    for row, other in zip(rows, told["rows"]):
        raw = result(f"tables/{os.path.dirname(row['raw'])}")["cases"][int(row["raw_case"])]
        check(raw["name"] == row["case"] == other["case"] and os.path.exists(f"tables/{row['raw']}") and row["raw"] == other["raw"],
              f"it leads to its raw runs: {row}")
        check(abs(float(row["median"]) / raw["summary"]["median"]["value"] - 1) < 1e-9 and row["unit"] == raw["unit"], f"its median: {row}")
        check((row["sample_joules"] == "") == (other["sample_joules"] is None), "what is not measured has no number")
    net = rows[3]
    m = result("net")["cases"][3]["summary"]["metrics"]
    check(net["case"] == "net 2" and float(net["replica_batch"]) == m["batch"] / CALLED and net["precision"] == "f32", f"its batch: {net}")
    check(abs(float(net["efficiency"]) * CALLED * float(rows[2]["median"]) / float(net["median"]) - 1) < 1e-6, f"its efficiency: {net}")
    flop = (m["step_flop"] - m.get("recomputed_flop", 0)) * CALLED / m["step_s"]
    check(abs(float(net["flop_per_s"]) / flop - 1) < 1e-6 and net["share_of_published_peak"] == "", f"its use: {net}")
    check([c["case"] for c in told["comparisons"]] == [], "nothing in common with the first")
    text = open("tables/t.md").read()
    check("[net 2](../net/runs.csv)" in text and "Scaling:" in text and "What trainings made" in text, f"the page: {text}")
    accepted(["report", "--bench", "before", "apart", "--out", "tables/two.md"])
    accepted(["report", "--bench", "before", "apart", "--out", "tables/two.html"])
    page = open("tables/two.html").read()
    check("Next to each other" in page and "is slower than" in page and page.count('href="#r1c0"') >= 6, "also on the page")
    check("Next to each other" in open("tables/two.md").read(), "results with a case in common are compared")


def impossible():
    """Two replicas that are three times as fast as one: an error wherever the result is told, and in its exit code."""
    with open("scaled.yaml", "w") as f:
        f.write("name: scaled\nseconds: 20\nruns: 5\nwarmup: 0\ncases:\n" + "".join(
            f"  - {{name: r {n}, run: 'echo {figure} x', pattern: '([0-9]+) x', unit: samples/s, scaling: strong, replicas: {n}}}\n"
            for n, figure in ((1, 100), (2, 300), (4, 380))))
    cannot = "an efficiency of 150 % cannot be"
    with open("scaled.yaml") as f:
        text = f.read()
    with open("timed.yaml", "w") as f:  # times: half the time by two is all that there is to win, of weak scaling the same time
        f.write(text.replace("unit: samples/s", "unit: s, better: less").replace("echo 300", "echo 50").replace("echo 380", "echo 50")
                + "".join(f"  - {{name: w {n}, run: 'echo 100 x', pattern: '([0-9]+) x', unit: s, better: less, scaling: weak, replicas: {n}}}\n" for n in (1, 2)))
    accepted(["bench", "--suite", "timed.yaml", "--most-runs", "5", "--out", "timed"])
    accepted(["report", "--bench", "timed", "--out", "timed.csv"])
    told = [row["efficiency"] for row in csv.DictReader(open("timed.csv"))]
    check([x and float(x) for x in told] == ["", 1, 0.5, "", 1], f"efficiency of times: {told}")
    for old, new, words in (("replicas: 1}", "replicas: 3}", "has one replica to compare with"), ("scaling: strong, replicas: 2", "replicas: 2", "'replicas' goes with 'scaling'")):
        with open("bad.yaml", "w") as f:
            f.write(text.replace(old, new))
        refused(["bench", "--suite", "bad.yaml"], 1, "bad.yaml:", words)
    refused(["bench", "--suite", "scaled.yaml", "--most-runs", "5", "--out", "scaled"], 1, f"'r 2': {cannot}", lines=None)
    for ending in "md", "csv", "json", "html":
        accepted(["report", "--bench", "scaled", "--out", f"scaled.{ending}"])
        text = open(f"scaled.{ending}").read()
        check(text.count(cannot) == 1, f"{ending}: {text}")
    rows = list(csv.DictReader(open("scaled.csv")))
    check([bool(row["error"]) for row in rows] == [False, True, False] and abs(float(rows[2]["efficiency"]) - 0.95) < 1e-9, f"of two alone: {rows}")
    done = run("bench", "submit", "--check", "scaled")
    check(done.returncode == 1 and cannot in done.stdout, f"nor can it be published: {done.stdout}")
    check(cannot in open("scaled/report.md").read(), "and the folder's own report says it")
    refused(["bench", "compare", "scaled", "scaled"], 1, cannot, lines=None)
    with open("scaled-prices.yaml", "w") as f:
        f.write("date: 2026-11-01\ncurrency: EUR\nelectricity: 0.30 EUR/kWh\nwork: 1000 samples\nmachines:\n"
                "  - {name: rented, source: an offer, hourly: 3.60 EUR/h, result: scaled, case: r 2}\n")
    refused(["bench", "cost", "scaled-prices.yaml", "scaled"], 1, cannot)


def trainings():
    """What a run of Stoker's says of itself is kept, and stands on the page next to the peaks; replicas have an efficiency."""
    train = ("'rm -rf {work}/run && {stoker} train {work}/net.yaml --device {device} --steps 3 --quiet --seed $STOKER_BENCH_RUN "
             "--out {work}/run'")
    with open("net-suite.yaml", "w") as f:
        f.write("name: net\nseconds: 30\nruns: 2\nwarmup: 0\nfiles:\n  net.yaml: |\n    name: net\n    data: {train: {source: {synthetic: "
                "{fields: {image: [8, 8, 1]}, classes: 4}}}}\n    batch: 8\n    model: {mlp: {hidden: [16], classes: 4}}\n    optimizer: {adam: {lr: 0.01}}\n"
                "    epochs: 1\n    precision: f32\n    checkpoint: {end: false}\ncases:\n"
                "  - {name: product, run: '{stoker} bench part matmul 64x64x64 f32 --seconds 0', pattern: '^([0-9.,]+) ', unit: GFLOP/s, precision: f32}\n"
                "  - {name: memory, run: '{stoker} bench part memory 1 --seconds 0', pattern: '^([0-9.,]+) ', unit: GB/s}\n")
        for n, replicas in (1, 1), (2, CALLED):
            f.write(f"  - {{name: net {n}, run: {train}, file: '{{work}}/run/result.json', key: samples_per_s, unit: samples/s, precision: f32, "
                    f"replicas: {replicas}, scaling: weak, about: three steps}}\n")
        f.write("  - {name: never, run: 'false', cores: 4096}\n")
    accepted(["bench", "--suite", "net-suite.yaml", "--most-runs", "2", "--device", "cpu", "--out", "net"], "net 1")
    r = result("net")
    check([c["name"] for c in r["cases"]] == ["product", "memory", "net 1", "net 2"], "a case for more cores is left out")
    m = r["cases"][2]["summary"]["metrics"]
    check(m["batch"] == 8 and m["step_flop"] > 0 and m["step_s"] > 0 and m["steps"] == 3 and m["planned_bytes"] > 0, f"metrics: {m}")
    epochs = [x["metrics"]["epoch_s"] * x["metrics"]["samples_per_s"] / m["batch"] for x in r["cases"][2]["runs"]]
    check(all(abs(steps - round(steps)) < 1e-3 and round(steps) == round(epochs[0]) for steps in epochs),
          f"an epoch is whole steps at the rate of a run: {epochs}")
    check(all("step_s" in x["metrics"] for x in r["cases"][2]["runs"]) and not r["cases"][0]["summary"]["metrics"], "of each run")
    check(r["machine"]["device"] == "cpu" and r["machine"]["published"] is None, "the device is told")
    accepted(["report", "--bench", "net", "--out", "net.html"])
    page = open("net.html").read()
    check(all(word in page for word in ("What trainings made of the machine", "Efficiency", "roofline", "three steps")), "the page has it")
    check(page.count('href="#r0c2"') >= 15, "each figure of a case leads to its runs")
    with open("net-prices.yaml", "w") as f:
        f.write("date: 2026-11-01\ncurrency: EUR\nelectricity: 0.30 EUR/kWh\nwork: 1000 samples\nmachines:\n"
                "  - {name: rented, source: an offer, hourly: 3.60 EUR/h, result: net, case: net 1}\n")
    told = json.loads(accepted(["bench", "cost", "net-prices.yaml", "net", "--out", "cost.html", "--json"]).stdout)
    rate = r["cases"][2]["summary"]["median"]["value"]
    check(abs(told["machines"][0]["million"] * rate / 1000 - 1) < 1e-6 and "Rent or buy" in open("cost.html").read(), f"its cost: {told}")
    accepted(["report", "--bench", "net", "--prices", "net-prices.yaml", "--out", "net.html"])
    page = open("net.html").read()
    check("What the money buys" in page and "Rent or buy" in page and "What trainings made" in page, "the page has its cost")
    accepted(["report", "--bench", "net", "--prices", "net-prices.yaml", "--out", "net.md"])
    check("| rented |" in open("net.md").read(), "and so has the table in Markdown")
    refused(["report", "--bench", "net", "--prices", "net-prices.yaml", "--out", "net.csv"], 1, "bench cost PRICES DIR --json")
    refused(["report", "--bench", "net", "--prices", "nowhere.yaml", "--out", "net.html"], 1, "nowhere.yaml")
    refused(["report", "net", "--prices", "net-prices.yaml"], 2, "goes with '--bench'")
    refused(["bench", "cost", "net-prices.yaml"], 1, "not among those given")
    with open("net-prices.yaml") as f:
        text = f.read()
    with open("mixed.yaml", "w") as f:
        f.write(text + "  - {name: other, source: an offer, hourly: 1 EUR/h, result: net, case: net 2}\n")
    accepted(["bench", "cost", "mixed.yaml", "net"], "The rates are of different cases, 'net 1' and 'net 2'")
    with open("typo.yaml", "w") as f:
        f.write(text.replace("case: net 1", "case: nte 1"))
    refused(["bench", "cost", "typo.yaml", "net"], 1, "has no case 'nte 1'; did you mean 'net 1'?")
    refused(["bench", "--device", "cpu", "--", "true"], 2, "goes with a suite")
    accepted(["devices", "--published"], "NVIDIA H100 PCIe")
    with open("wide.yaml", "w") as f:
        f.write("name: w\ndata: {train: {source: {synthetic: {fields: {image: [8, 8, 1]}, classes: 4}}}}\nbatch: 8\nmodel: {mlp: {classes: 4}}\noptimizer: adam\n"
                "epochs: 1\n")
    largest = int(accepted(["plan", "wide.yaml", "--largest-batch", "1"]).stdout)
    check(largest >= 8 and largest & (largest - 1) == 0, f"doublings of the batch: {largest}")


def parts():
    for part in (["matmul", "16x16x16", "f32"], ["matmul", "16x16x16", "bf16"], ["matmul", "16x16x16", "f16"], ["conv", "1x8x8x4x4x3", "f32"], ["memory", "1"], ["jpeg", "32x32"],
                 ["storage", "write", "1"], ["storage", "read", "1"], ["storage", "random", "1"], ["copy", "1"], ["copy", "1", "out"], ["copy", "1", "on"],
                 ["copy", "1", "to", "--to", "cpu:1"], ["allreduce", "1"]):
        done = accepted(["bench", "part", *part, "--seconds", "0"])
        check(float(done.stdout.split()[0].replace(",", "")) > 0, f"{part}: {done.stdout}")
    accepted(["bench", "part", "--list"], "matmul")
    refused(["bench", "part", "matmul", "16x16", "f32"], 1, "3 sizes")
    refused(["bench", "part", "matmul", "16x16x16", "f13"], 1, "f13")
    refused(["bench", "part", "speed"], 2, "there is no part 'speed'", "--list")
    refused(["bench", "part", "copy", "1", "to", "--to", "cpu:0"], 1, "is the device itself")
    refused(["bench", "part", "copy", "0"], 1, "a whole number from 1 to")


def costs():
    with open("prices.yaml", "w") as f:
        f.write("date: 2026-11-01\ncurrency: EUR\nelectricity: 0.30 EUR/kWh\nwork: 50000 samples\nmachines:\n"
                "  - {name: rented, source: an offer, hourly: 3.60 EUR/h, rate: 1000 samples/s}\n")
    refused(["bench", "cost", "prices.yaml", "--out", "c.txt"], 1, "a page ends in .html")
    accepted(["bench", "cost", "prices.yaml"], "| rented | 1,000 | 3.6 |", "A million samples, EUR")
    told = json.loads(accepted(["bench", "cost", "prices.yaml", "--json"]).stdout)
    check(abs(told["machines"][0]["million"] - 1) < 1e-9, f"3.60 EUR for 3.6 million: {told}")
    with open("prices.yaml") as f:
        text = f.read()
    with open("both.yaml", "w") as f:
        f.write(text + "  - {name: bought, source: a shop, date: 2026-10-01, purchase: 8766 EUR, lifetime: 2 years, power: 1000 W, utilisation: 50%, rate: 1000 samples/s}\n")
    told = json.loads(accepted(["bench", "cost", "both.yaml", "--json"]).stdout)
    even, bought = told["break_even"], told["machines"][1]
    # 8,766 EUR in 8,766 hours of work: 1 EUR an hour, and 0.30 for its energy; each hour saves 3.60 - 0.30.
    check(abs(bought["hour"] - 1.3) < 1e-9 and len(even) == 1 and abs(even[0]["hours"] - 8766 / 3.3) < 1e-4
          and abs(even[0]["years"] - 8766 / 3.3 / 4383) < 1e-6, f"when buying pays: {told}")
    check(bought["date"] == "2026-10-01" and bought["source"] == "a shop" and told["electricity_kwh"] == 0.3 and told["pue"] == 1
          and told["unit"] == "samples" and told["units_of_work"] == 50000, f"what it was computed from: {told}")
    a_million = {k: round(v * 3.6, 6) for k, v in bought["million_with"].items()}
    check(a_million == {"as_it_is": 1.3, "price_less_20": 1.1, "price_more_20": 1.5, "electricity_x2": 1.6, "utilisation_100": 0.8,
                        "utilisation_50": 1.3, "utilisation_25": 2.3}, f"with other prices: {a_million}")
    with open("prices.yaml", "a") as f:
        f.write("  - {name: other, source: an offer, hourly: 3.60, rate: 1000 samples/s}\n")
    refused(["bench", "cost", "prices.yaml"], 1, "prices.yaml:7:", "EUR/h")
    for line, words in (("{name: rented, source: x, hourly: 1 EUR/h, rate: 1 samples/s}", "two machines 'rented'"),
                        ("{name: b, source: x, hourly: 1 EUR/h, purchase: 1 EUR, rate: 1 samples/s}", "not both"),
                        ("{name: b, source: x, purchase: 1 EUR, power: 1 W, rate: 1 samples/s}", "needs its 'lifetime'"),
                        ("{name: b, source: x, hourly: '2,5 EUR/h', rate: 1 samples/s}", "a number above 0 with the unit EUR/h"),
                        ("{name: b, source: x, purchase: 1 EUR, lifetime: 1 years, rate: 1 samples/s}", "needs its 'power'")):
        with open("prices.yaml") as f:
            text = f.read()
        with open("more.yaml", "w") as f:
            f.write(text[:text.index("  - {name: other")] + f"  - {line}\n")
        refused(["bench", "cost", "more.yaml"], 1, "more.yaml:7:", words)


def schema():
    try:
        import jsonschema
    except ImportError:
        print("SKIP the schema: there is no python3-jsonschema")
        return
    with open(f"{ROOT}/docs/bench-schema.json") as f:
        wanted = json.load(f)
    for folder in "one", "figure", "pair", "hot", "suite", "net", "late", "left", "scaled":
        jsonschema.validate(result(folder), wanted)
    with open(f"{ROOT}/docs/bench-table-schema.json") as f:
        table = json.load(f)
    accepted(["report", "--bench", "before", "apart", "--out", "tables/two.json"])
    accepted(["report", "--bench", "pair", "scaled", "--out", "tables/words.json"])
    for name in "t", "words", "two":
        with open(f"tables/{name}.json") as f:
            told = json.load(f)
        jsonschema.validate(told, table)
    check(told["comparisons"], "the last of them compares")
    del told["rows"][0]["raw"]
    try:
        jsonschema.validate(told, table)
        check(False, "the table's schema wants the place of the runs")
    except jsonschema.ValidationError:
        pass
    bad = result("one")
    bad["cases"][0]["unit"] = ""
    try:
        jsonschema.validate(bad, wanted)
        check(False, "the schema wants units")
    except jsonschema.ValidationError:
        pass


begin()
a_time()
an_end_by_entropy()
a_figure()
failures()
comparisons()
played_conditions()
played_gpu()
submission()
suite()
impossible()
trainings()
tables()
parts()
costs()
schema()
end()
