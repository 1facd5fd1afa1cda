-- The queries of tables.py and store.py: "-- name" begins each, and what follows it in comments says what it answers.
--
-- held, fact, figure: the fleet of now, by numbers (tables.py); held_before, figure_before: the earlier report.
-- looked, said, measured: the store (store.py).

-- shares
--   How many know which value of each fact, an absent one (null) among them, and which more than half share.
--   It makes tables, of which ``departures`` and ``undecided`` ask.
create temp table weight as
    select basis, aspect, facts, complete, count(*) as n from held group by all;
create temp table share as
with told as (
    select basis, aspect, what, value, sum(n) as n, sum(n) filter (complete) as complete
    from weight join fact using (facts) group by all
), whole as (
    select basis, aspect, sum(n) filter (complete) as complete from weight group by all
), absent as (
    select basis, aspect, what, null as value, any_value(whole.complete) - coalesce(sum(told.complete), 0) as n
    from told join whole using (basis, aspect) group by basis, aspect, what
)
select *, sum(n) over (partition by basis, aspect, what) as known,
    row_number() over (partition by basis, aspect, what order by n desc, value) as place
from (select basis, aspect, what, value, n from told union all from absent where n > 0);
create temp table majority as
    select basis, aspect, what, value, n, known from share where place = 1 and n * 2 > known;

-- departures
--   Basis, aspect, fact, value (None: absent), common value, how many share it, how many know theirs, and the nodes and
--   subjects that depart.
with other as (
    select weight.basis, weight.aspect, weight.facts, what, fact.value as value, majority.value as common,
        majority.n, majority.known
    from weight join fact using (facts) join majority using (basis, aspect, what)
    where fact.value is distinct from majority.value and (majority.value is not null or weight.complete)
    union all
    select weight.basis, weight.aspect, weight.facts, what, null, majority.value, majority.n, majority.known
    from weight join majority using (basis, aspect)
    where weight.complete and majority.value is not null
        and not exists (from fact where fact.facts = weight.facts and fact.what = majority.what)
)
select basis, aspect, what, value, common, n, known, list(node order by node, subject),
    list(subject order by node, subject)
from other join held using (basis, aspect, facts) where node >= 0
group by all order by aspect, what, count(*), value, basis

-- undecided
--   Basis, aspect, fact, values and how many have each, where no value is that of more than half.
select basis, aspect, what, list(value order by place), list(n order by place)
from share where (basis, aspect, what) in (select (basis, aspect, what) from share where place = 1 and n * 2 <= known)
group by all order by aspect, what, basis

-- spread
--   Of each quantity: its number, count, median, median absolute deviation, lowest and highest value.
with middle as (select quantity, median(value) as middle from figure group by quantity)
select quantity, count(*), any_value(middle), median(abs(value - middle)), min(value), max(value)
from figure join middle using (quantity) group by quantity order by quantity

-- histogram
--   Quantity, bin from 0 on, count; of so many bins, and their greatest number.
with span as (
    select quantity, min(value) as low, (max(value) - min(value)) / ? as step from figure group by quantity
)
select quantity, least(cast(floor((value - low) / nullif(step, 0)) as int), ?) as bin, count(*)
from figure join span using (quantity) where bin is not null group by all order by all

-- drift
--   Aspect, fact, value before and now (None: absent), and the nodes and subjects where it changed.
with moved as (
    select distinct aspect, before.facts as old, now.facts as new, before.complete as old_complete,
        now.complete as new_complete
    from held as now join held_before as before using (node, aspect, subject)
    where now.node >= 0 and before.facts <> now.facts
), changed as (
    select aspect, old, new, old_complete, new_complete, now.what as what, before.value as old_value,
        now.value as new_value
    from moved join fact as before on before.facts = old
        join fact as now on now.facts = new and now.what = before.what
    where before.value <> now.value
    union all
    select aspect, old, new, old_complete, new_complete, what, before.value, null
    from moved join fact as before on before.facts = old
    where new_complete and not exists (from fact where fact.facts = new and fact.what = before.what)
    union all
    select aspect, old, new, old_complete, new_complete, what, null, now.value
    from moved join fact as now on now.facts = new
    where old_complete and not exists (from fact where fact.facts = old and fact.what = now.what)
)
select aspect, what, old_value, new_value, list(now.node order by now.node, now.subject),
    list(now.subject order by now.node, now.subject)
from changed join held_before as before using (aspect)
    join held as now on now.node = before.node and now.aspect = before.aspect and now.subject = before.subject
where before.facts = old and now.facts = new and now.node >= 0
group by all order by aspect, what, count(*), old_value, new_value

-- moved
--   Node, subject, quantity, value before and now, of figures that moved by more than a share, which is given twice.
select node, subject, quantity, before.value, now.value
from figure as now join figure_before as before using (node, subject, quantity)
where now.value < before.value * (1 - ?) or now.value > before.value * (1 + ?)
order by all

-- outside
--   Node, subject and value of the figures of a quantity below a limit or above another.
select node, subject, value from figure where quantity = ? and (value < ? or value > ?) order by node

-- made
create table envcheck_store as select 1 as version;
create table looked (node text, seen timestamp, verdict text, told text);
create table said (node text, seen timestamp, status text, what text, subject text, told text);
create table measured
    (node text, seen timestamp, subject text, part text, title text, value double, unit text, share double);

-- views
--   ``spells``: each unbroken row of looks at a node that said the same.
create temp view spells as
with looks as (
    select node, seen, row_number() over (partition by node order by seen) as place, max(seen) over () as newest,
        seen = max(seen) over (partition by node) as last
    from looked where verdict not in ('unanswered', 'vanished')
), islands as (
    select node, what, subject, seen, told, status, newest, last,
        place - dense_rank() over (partition by node, what, subject order by seen) as island
    from said join looks using (node, seen)
)
select node, what, subject, min(seen) as first, max(seen) as until, bool_or(last) as lasts,
    arg_max(status, seen) as status, arg_max(told, seen) as told, max(newest) as newest
from islands group by node, what, subject, island;
create temp view daily as
select node, part, title, seen::date as day, arg_max(subject, seen) as subject, median(share) as share
from measured where share > 0 group by all;

-- added
create temp table fresh as select distinct on (node, seen) * from new_looked anti join looked using (node, seen);
insert into said select new_said.* from new_said semi join fresh using (node, seen);
insert into measured select new_measured.* replace (nullif(share, 0) as share)
from new_measured semi join fresh using (node, seen);
insert into looked from fresh;

-- series
create temp table series as
select *, quantile_cont(share, 0.75) over own as usual, median(share) over own as middle, count(*) over own as days,
    row_number() over (partition by node, part, title order by day desc) as back,
    max(day) over (partition by node) as newest
from daily window own as (partition by node, part, title)

-- fallen
--   Node, subjects, quantities, speed as a share of what it was, and since which day: of what was slow on both of the
--   last two days.
with noise as (
    select title, median(abs(share - middle) / middle * sqrt(days / greatest(days - 1, 1))) as mad
    from series group by title
), now as (
    select node, part, title, any_value(usual) as usual, max(share) as now
    from series join noise using (title) where back <= 2 and days >= ?
    group by node, part, title
    having max(day) = any_value(newest) and max(share) < any_value(usual * (1 - greatest(?, ? * mad)))
), turned as (
    select node, part, title, any_value(now.now / now.usual) as ratio,
        coalesce(max(day) filter (share > (now.now + now.usual) / 2), date '0001-01-01') as well
    from now join series using (node, part, title) group by all
), dated as (
    select node, any_value(subject) as subject, title, any_value(ratio) as ratio, min(day) as since
    from turned join series using (node, part, title) where day > well group by node, part, title
)
select node, list(distinct subject), list(distinct title), median(ratio), quantile_disc(since, 0.5)::text
from dated group by node order by median(ratio), node

-- lasting
--   Node, what it says now of what, since when, and how many times it began within two weeks.
select node, what, subject, max(first)::date::text, count(*) filter (until >= newest - interval 14 day)
from spells group by node, what, subject having bool_or(lasts) order by all

-- verdicts
select min(seen)::date::text, max(seen)::date::text, verdict, arg_max(told, seen), count(*)
from (select *, row_number() over (order by seen) - row_number() over (partition by verdict order by seen) as island
    from looked where node = ?)
group by verdict, island order by min(seen)

-- said
select what, subject, first::date::text, until::date::text, lasts, status, told from spells
where node = ? order by lasts desc, first desc, what, subject

-- weeks
with own as (
    select *, median(value) over (partition by part, title) as middle from measured where node = ? and value > 0
)
select title, subject, date_trunc('week', seen)::date::text as week,
    median(coalesce(share, if(unit = 's', middle / value, value / middle))) as share
from own group by all order by title, subject, week

-- gpus
select node, count(distinct subject) from measured where subject not like '% to %' group by node

-- tables
select table_name from information_schema.tables

-- version
select version from envcheck_store

-- nodes
select distinct node from looked

-- count
select count(distinct (node, part, title)) from series

-- limit
create temp table kept as select max(seen) - to_days(?) as since from looked

-- forget
delete from said where seen < (select since from kept);
delete from measured where seen < (select since from kept);
delete from looked where seen < (select since from kept);
