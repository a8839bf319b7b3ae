package reminders

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/chats"
	"arizuko/gated/internal/contextobjects"
	"arizuko/gated/internal/rows"
	"arizuko/pkg/facts"
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/metrics"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// page is how many reminders fire in one commit: few enough that messages hardly wait for it.
	page = 64
	// realignPage is how many reminders are looked at after the clock was set back.
	realignPage = 500
	// maxWait bounds the sleep until the next slot: the clock may be set, and rows be changed by SQL.
	maxWait = time.Minute
	// retryDelay is the wait after a failed read or write.
	retryDelay = time.Second
	// clockStep is the least jump of the wall clock that counts as set by hand, and clockLook how often a sleep looks
	// for one.
	clockStep = time.Second
	clockLook = time.Second
)

// Dispatcher runs the turns that reminders make.
type Dispatcher interface {
	Dispatch(turns ...*msg.Turn)
}

// Config of a Scheduler.
type Config struct {
	MaxAgents int // how many agents may be busy at once
	Now       func() time.Time
	Operators map[string]bool
	Objects   *contextobjects.Objects // the active context objects, among them reminders; nil for none
	Chats     *chats.Chats
	Charged   func(folder string)     // a turn was stored that counts against a rate of the group; nil for nothing
	Report    func(problems []string) // gets the overdue reminders, in words for operators
}

// Scheduler fires reminders.
type Scheduler struct {
	cfg       Config
	st        *store.Store
	agents    Dispatcher
	log       *slog.Logger
	meter     *meter
	changed   chan struct{}
	lastClock clockReading
	alignFrom int64 // unix ms from which slots are to be computed again, 0 for no need
	outage    *store.Outage
}

// New makes a Scheduler that runs prompts through agents.
func New(cfg Config, st *store.Store, agents Dispatcher, log *slog.Logger, reg prometheus.Registerer) *Scheduler {
	if cfg.Charged == nil {
		cfg.Charged = func(string) {}
	}
	return &Scheduler{
		cfg: cfg, st: st, agents: agents, log: log, meter: newMeter(reg, st),
		changed: make(chan struct{}, 1), outage: store.NewOutage(log, "fire reminders"),
	}
}

// Changed tells the scheduler that reminders were added or changed.
func (s *Scheduler) Changed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run fires reminders until ctx ends.
func (s *Scheduler) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		var wait time.Duration
		err := s.guard(func() (err error) {
			s.readClock()
			if s.alignFrom != 0 {
				if err := s.realign(ctx, s.alignFrom); err != nil {
					return err
				}
				s.alignFrom = 0
			}
			wait, err = s.fireDue(ctx)
			return err
		})
		if s.outage.Note(ctx, err) != nil {
			wait = retryDelay
		}
		s.sleep(ctx, wait)
	}
	return nil
}

// guard keeps a panic from ending the daemon.
func (s *Scheduler) guard(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("panic while firing reminders", "panic", cause, "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, cause)
		}
	}()
	return work()
}

var errPanic = errors.New("panic")

// sleep ends early if reminders change, or the clock is set.
func (s *Scheduler) sleep(ctx context.Context, wait time.Duration) {
	timer, look := time.NewTimer(wait), time.NewTicker(clockLook)
	defer timer.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-s.changed:
			return
		case <-look.C:
			if now := s.readClocks(); now.set(s.lastClock).Abs() >= clockStep {
				return
			}
		}
	}
}

// clockReading is the reading of two clocks at once: the wall clock, which may be set, and the monotonic one.
type clockReading struct{ wall, monotonic time.Time }

func (s *Scheduler) readClocks() clockReading { return clockReading{s.cfg.Now().Round(0), time.Now()} }

// set is by how much the wall clock was set since the last reading.
func (c clockReading) set(last clockReading) time.Duration {
	return c.wall.Sub(last.wall) - c.monotonic.Sub(last.monotonic)
}

// readClock notes from when on slots are to be computed again: at the start from now, and when the wall clock was set
// back since the last call from the earliest time that it may have shown since. Slots may have passed after it was set.
func (s *Scheduler) readClock() {
	now, last := s.readClocks(), s.lastClock
	s.lastClock = now
	switch {
	case last.wall.IsZero():
		s.alignFrom = now.wall.UnixMilli()
	case now.set(last) <= -clockStep:
		at := now.wall.Add(-now.monotonic.Sub(last.monotonic)).UnixMilli()
		s.alignFrom = min(at, cmp.Or(s.alignFrom, at))
	}
}

// fireDue fires a page of due reminders, and returns the time until there is more to do.
func (s *Scheduler) fireDue(ctx context.Context) (wait time.Duration, err error) {
	due, err := factrows.Reminders(ctx, s.st.Reader, factrows.ReminderList{DueBy: s.now(), Limit: page})
	if err != nil {
		return 0, err
	}
	if len(due) > 0 {
		return 0, s.fire(ctx, due)
	}
	at, err := rows.NextSlot(ctx, s.st.Reader)
	if err != nil || at == 0 {
		return maxWait, err
	}
	return min(max(time.Duration(at-s.now())*time.Millisecond, time.Millisecond), maxWait), nil
}

// firing is a due reminder on its way to its message.
type firing struct {
	*msg.Reminder
	decision
	problem string // why the reminder cannot fire any more
	rows.Firing
	members *groupconfig.Members // of the group
	fired   bool
	limited bool // its sender has no turn left
}

// fire fires reminders, each in a write of its own, all in one commit.
func (s *Scheduler) fire(ctx context.Context, due []*msg.Reminder) error {
	now := s.now()
	firings := make([]*firing, 0, len(due))
	writes := make([]func(*store.Tx) error, 0, len(due))
	for _, r := range due {
		f, err := s.prepareAlone(ctx, r, now)
		if err != nil {
			return err
		}
		firings = append(firings, f)
		writes = append(writes, func(tx *store.Tx) error { return s.write(tx, f, now) })
	}
	var turns []*msg.Turn
	var failed error
	for i, err := range s.st.WriteAll(ctx, writes...) {
		f := firings[i]
		switch {
		case err == nil:
			s.note(f)
			if f.fired && f.Turn != nil {
				turns = append(turns, f.Turn)
				s.cfg.Charged(f.Folder)
			}
		case errors.Is(err, store.ErrStale): // changed meanwhile: it is read again
		case errors.Is(err, store.ErrRefused) || errors.Is(err, store.ErrPanic):
			failed = errors.Join(failed, s.end(ctx, f.Reminder, "its message cannot be stored: "+err.Error()))
		default:
			failed = errors.Join(failed, err)
		}
	}
	if len(turns) > 0 {
		s.agents.Dispatch(turns...)
	}
	return failed
}

// prepareAlone prepares a reminder. A panic ends that reminder alone.
func (s *Scheduler) prepareAlone(ctx context.Context, r *msg.Reminder, now int64) (f *firing, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.guard(func() (err error) {
		f, err = s.prepare(ctx, r, now)
		return err
	})
	if errors.Is(err, errPanic) {
		return &firing{Reminder: r, problem: err.Error()}, nil
	}
	return f, err
}

// prepare decides a due reminder, and whether its group may still write to its chat.
func (s *Scheduler) prepare(ctx context.Context, r *msg.Reminder, now int64) (*firing, error) {
	f := &firing{Reminder: r}
	var err error
	if f.decision, err = decide(r, now); err != nil {
		f.problem = err.Error()
		return f, nil //nolint:nilerr // the reminder ends with it
	}
	may, err := s.cfg.Chats.MayRemind(ctx, s.st.Reader, r.ChatJID, r.Folder)
	if err != nil {
		return nil, err
	}
	if !may {
		f.problem = "the chat is not the group's any more, by its routes"
		return f, nil
	}
	if f.members, err = s.members(ctx, s.st.Reader, r); err != nil {
		return nil, err
	}
	by, err := s.origin(ctx, s.st.Reader, r)
	if err != nil {
		return nil, err
	}
	if f.problem = excluded(by, f.members, r); f.problem != "" {
		return f, nil
	}
	if f.problem, err = s.refused(ctx, r); err != nil || f.problem != "" {
		return f, err
	}
	kind, err := rows.ChatKind(ctx, s.st.Reader, r.ChatJID)
	if err != nil {
		return nil, err
	}
	f.Firing = rows.Firing{Slot: f.slot, Next: f.next, MaxAgents: s.cfg.MaxAgents}
	f.Message, f.Turn = firingMessages(r, kind, now)
	if f.Turn == nil {
		f.Message.OutState = msg.OutStateOf(r.ChatJID)
	}
	return f, nil
}

// maxRefused is how many messages of a reminder the platform refuses, one after another, before it ends.
const maxRefused = 3

// refused says why a reminder ends whose messages cannot be delivered, "" if it goes on.
func (s *Scheduler) refused(ctx context.Context, r *msg.Reminder) (problem string, err error) {
	if r.ThreadID == "" {
		if has, err := rows.HasTopLevel(ctx, s.st.Reader, r.ChatJID); err != nil || !has {
			return "the chat is a forum, where all messages are in posts, and this was made in none", err
		}
	}
	if r.Cron == "" {
		return "", nil
	}
	why, err := rows.RefusedSlots(ctx, s.st.Reader, r.ID, maxRefused)
	if err != nil || len(why) < maxRefused || slices.Contains(why, "") {
		return "", err
	}
	return fmt.Sprintf("its last %d messages were not delivered: %s", maxRefused, why[0]), nil
}

func (s *Scheduler) write(tx *store.Tx, f *firing, now int64) (err error) {
	if f.problem != "" {
		return s.endIn(tx, f.Reminder, "gated", f.problem, now)
	}
	over, err := s.overRate(tx, f, now)
	if err != nil {
		return err
	}
	if over && f.Next == 0 {
		f.problem = "the sender who asked for it had no turn left in the group, by its rate"
		return s.endIn(tx, f.Reminder, "gated", f.problem, now)
	}
	if over {
		f.Slot = 0
	}
	if f.fired, err = rows.FireReminder(tx, f.Reminder, f.Firing, now); err != nil {
		return err
	}
	return s.setDue(tx, f.Reminder, f.Next, now)
}

// endIn cancels a reminder. If there was a problem, the group's agent reads of it.
func (s *Scheduler) endIn(tx *store.Tx, r *msg.Reminder, by, problem string, now int64) error {
	if err := rows.EndReminder(tx, r.ID, msg.ReminderCancelled, by, problem, now); err != nil {
		return err
	}
	if problem != "" {
		body := fmt.Sprintf("Reminder %d for chat %s is cancelled: %.300s.", r.ID, r.ChatJID, problem)
		if err := tx.PutSystemMessage(r.Folder, by, "reminder_cancelled", body, now); err != nil {
			return err
		}
	}
	return s.setDue(tx, r, 0, now)
}

// setDue notes in the active context objects when a reminder fires next, 0 for never.
func (s *Scheduler) setDue(tx *store.Tx, r *msg.Reminder, next, now int64) error {
	if s.cfg.Objects == nil {
		return nil
	}
	return s.cfg.Objects.SetReminderDue(tx, r.ChatJID, r.ID, next, now)
}

// note counts and logs the outcome of a reminder.
func (s *Scheduler) note(f *firing) {
	log := s.log.With("reminder", f.ID, "chat", f.ChatJID, "folder", f.Folder)
	if f.problem != "" {
		s.meter.fired.WithLabelValues(outcomeEnded).Inc()
		log.Warn("reminder cancelled", "reason", f.problem)
		return
	}
	if f.missed {
		s.meter.missed.Inc()
	}
	if !f.fired {
		s.meter.fired.WithLabelValues(outcomeSkipped).Inc()
		if f.limited {
			log.Warn("reminder skipped a slot: its sender has no turn left in the group")
			return
		}
		log.Info("reminder skipped a missed slot")
		return
	}
	s.meter.fired.WithLabelValues(string(f.Kind)).Inc()
	log.Info("reminder fired", "row", f.Message.ID, "wait", time.Duration(s.now()-f.slot)*time.Millisecond)
}

// end ends a reminder that would fail for ever.
func (s *Scheduler) end(ctx context.Context, r *msg.Reminder, problem string) error {
	err := s.st.Write(ctx, func(tx *store.Tx) error { return s.endIn(tx, r, "gated", problem, s.now()) })
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	if err == nil {
		s.note(&firing{Reminder: r, problem: problem})
	}
	return err
}

// realign computes the next slots after a time, in unix ms, of all reminders whose next slot is not known, or is later
// than it should be: they were inserted by SQL, or computed while the clock was ahead or the time zone had other rules.
// Slots that have fired do not fire again.
func (s *Scheduler) realign(ctx context.Context, from int64) error {
	for after := int64(0); ; {
		all, err := factrows.Reminders(ctx, s.st.Reader, factrows.ReminderList{After: after, Limit: realignPage})
		if err != nil || len(all) == 0 {
			return err
		}
		for _, r := range all {
			after = r.ID
			if err := ctx.Err(); err != nil {
				return err
			}
			at := int64(0)
			err := s.guard(func() (err error) {
				at, err = Next(r, from)
				return err
			})
			if err != nil || at == r.NextSlot || r.NextSlot != 0 && r.NextSlot <= at {
				continue // an error is met again, and ends the reminder, when it is due
			}
			err = s.st.Write(ctx, func(tx *store.Tx) error { return rows.ScheduleReminder(tx, r, at) })
			if err != nil && !errors.Is(err, store.ErrStale) {
				return err
			}
			s.log.Info("reminder scheduled again", "reminder", r.ID, "wait",
				time.Duration(max(at-s.now(), 0))*time.Millisecond)
		}
	}
}

func (s *Scheduler) now() int64 { return s.cfg.Now().UnixMilli() }

// Outcomes of slots besides the kinds of reminders.
const (
	outcomeSkipped = "skipped" // its time had passed, or it had fired before
	outcomeEnded   = "ended"   // the reminder cannot fire any more
)

type meter struct {
	fired  *prometheus.CounterVec
	missed prometheus.Counter
}

func newMeter(reg prometheus.Registerer, st *store.Store) *meter {
	m := &meter{
		fired: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "arizuko_reminders_fired_total",
			Help: "Due reminders, by outcome: a text, a prompt, skipped since it was missed, " +
				"or ended since it cannot fire any more.",
		}, []string{"outcome"}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "arizuko_reminders_missed_total",
			Help: "Due reminders that were more than five minutes late, or had missed several slots.",
		}),
	}
	for _, outcome := range []string{string(msg.ReminderText), string(msg.ReminderPrompt), outcomeSkipped,
		outcomeEnded} {
		m.fired.WithLabelValues(outcome)
	}
	active := prometheus.NewGauge(prometheus.GaugeOpts{Name: "arizuko_reminders_active",
		Help: "Reminders that are still to fire."})
	metrics.FromRows(reg, func(ctx context.Context) error {
		n, err := rows.CountActiveReminders(ctx, st.Reader)
		active.Set(float64(n))
		return err
	}, active)
	if reg != nil {
		reg.MustRegister(m.fired, m.missed)
	}
	return m
}

// watchEvery is how often Watch looks.
const watchEvery = 30 * time.Second

// Watch reports overdue reminders until ctx ends. It looks beside Run, which may hang itself.
func (s *Scheduler) Watch(ctx context.Context) error {
	outage := store.NewOutage(s.log, "look for overdue reminders")
	return outage.Repeat(ctx, watchEvery, func(ctx context.Context) error {
		problems, err := s.overdue(ctx)
		if err == nil {
			s.cfg.Report(problems)
		}
		return err
	})
}

// overdue names reminders that should have fired, for operators.
func (s *Scheduler) overdue(ctx context.Context) (problems []string, err error) {
	late, err := facts.OverdueReminders(ctx, s.st.Reader, s.now(), true)
	for _, f := range late {
		problems = append(problems, f.String())
	}
	return problems, err
}
