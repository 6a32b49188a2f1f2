"""Where the threads of a team wait for each other, as LLVM functions.

Threads that share one body meet between its loops: what one has written, the others see. The last
to arrive lets all go, and tells them the same: 1 where the run is to stop, 2 where the team is to
part. The others look again and again, and after a while let other processes run between.

Where others need the processor, threads wait for one that does not run. The first thread measures
how long it waits; a team that is hardly faster than one thread parts, and the first goes on alone.

The meeting place is an array of 64-bit numbers, zero at first:

    0 threads that have arrived, 8 the turn and what was told, 16 the scratch memory of the body,
    24 whether to part, 25 nanoseconds the first thread has waited, 26 since when
"""

import platform

PLACE = 32
SCRATCH, PARTED = 16, 24

_PAUSE = "  call void @llvm.x86.sse2.pause()"

# A thread looks so often before it lets others run: some ten microseconds.
_LOOKS = 1000
# Nanoseconds after which a team is looked at, and again.
_WINDOW = 20_000_000


def meeting() -> str:
    """Return the functions `meet`, which returns messages, and `review`, at the end of a step."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return f"""
declare i32 @sched_yield()
declare i32 @timespec_get(ptr, i32)
{"declare void @llvm.x86.sse2.pause()" if x86 else ""}

define internal i64 @now() {{
  %time = alloca [2 x i64], align 8
  %done = call i32 @timespec_get(ptr %time, i32 1)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}}

define internal i64 @meet(ptr %place, i64 %me, i64 %team, ptr %flag) noinline {{
entry:
  %alone = icmp ule i64 %team, 1
  br i1 %alone, label %solo, label %arrive
solo:
  %heard.alone = load atomic i32, ptr %flag monotonic, align 4
  %stop.alone = icmp ne i32 %heard.alone, 0
  %told.alone = zext i1 %stop.alone to i64
  ret i64 %told.alone
arrive:
  %turn.at = getelementptr i64, ptr %place, i64 8
  %turn = load atomic i64, ptr %turn.at monotonic, align 8
  %before = atomicrmw add ptr %place, i64 1 acq_rel
  %arrived = add i64 %before, 1
  %last = icmp eq i64 %arrived, %team
  br i1 %last, label %release, label %look
release:
  %heard = load atomic i32, ptr %flag monotonic, align 4
  %stop = icmp ne i32 %heard, 0
  %part.at = getelementptr i64, ptr %place, i64 24
  %part = load atomic i64, ptr %part.at monotonic, align 8
  %two = select i1 %stop, i64 1, i64 %part
  store atomic i64 0, ptr %place monotonic, align 8
  %plain = and i64 %turn, -4
  %following = add i64 %plain, 4
  %next = or i64 %following, %two
  store atomic i64 %next, ptr %turn.at release, align 8
  ret i64 %two
look:
  %looks = phi i64 [ 0, %arrive ], [ %looks.next, %pause ]
  %seen = load atomic i64, ptr %turn.at acquire, align 8
  %changed = xor i64 %seen, %turn
  %same = icmp ult i64 %changed, 4
  br i1 %same, label %pause, label %go
go:
  %told = and i64 %seen, 3
  ret i64 %told
pause:
{_PAUSE if x86 else ""}
  %looks.next = add i64 %looks, 1
  %enough = icmp ugt i64 %looks, {_LOOKS}
  br i1 %enough, label %late, label %look
late:
  %since = call i64 @now()
  br label %yield
yield:
  %yielded = call i32 @sched_yield()
  %seen.late = load atomic i64, ptr %turn.at acquire, align 8
  %changed.late = xor i64 %seen.late, %turn
  %same.late = icmp ult i64 %changed.late, 4
  br i1 %same.late, label %yield, label %over
over:
  %told.late = and i64 %seen.late, 3
  %first = icmp eq i64 %me, 0
  br i1 %first, label %note, label %leave
note:
  %until = call i64 @now()
  %wait = sub i64 %until, %since
  %waited.at = getelementptr i64, ptr %place, i64 25
  %waited = load i64, ptr %waited.at, align 8
  %more = add i64 %waited, %wait
  store i64 %more, ptr %waited.at, align 8
  br label %leave
leave:
  ret i64 %told.late
}}

define internal void @review(ptr %place, i64 %me, i64 %team) noinline {{
entry:
  %others = icmp ugt i64 %team, 1
  %first = icmp eq i64 %me, 0
  %reviews = and i1 %others, %first
  br i1 %reviews, label %clock, label %done
clock:
  %time = call i64 @now()
  %began.at = getelementptr i64, ptr %place, i64 26
  %began = load i64, ptr %began.at, align 8
  %waited.at = getelementptr i64, ptr %place, i64 25
  %fresh = icmp eq i64 %began, 0
  br i1 %fresh, label %restart, label %compare
compare:
  %total = sub i64 %time, %began
  %short = icmp slt i64 %total, {_WINDOW}
  br i1 %short, label %done, label %judge
judge:
  ; It works a part 1 - waited / total of the time: is that less than 1.25 / team?
  %waited = load i64, ptr %waited.at, align 8
  %four = mul i64 %team, 4
  %left = mul i64 %waited, %four
  %least = sub i64 %four, 5
  %right = mul i64 %total, %least
  %parts = icmp sgt i64 %left, %right
  %word = select i1 %parts, i64 2, i64 0
  %part.at = getelementptr i64, ptr %place, i64 24
  store atomic i64 %word, ptr %part.at monotonic, align 8
  br label %restart
restart:
  store i64 %time, ptr %began.at, align 8
  store i64 0, ptr %waited.at, align 8
  br label %done
done:
  ret void
}}
"""
