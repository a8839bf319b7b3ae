// Package transcribe runs the command that a group names for its audio files, in config.transcribe, and stores its
// output. A turn waits for that, as for its files, until a deadline that is stored: whatever the command does, the turn
// starts then.
package transcribe

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"arizuko/gated/internal/rows"

	"github.com/prometheus/client_golang/prometheus"

	"arizuko/gated/internal/running/groupfiles"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// tick is how often files that have come are looked for, as long as some are to be transcribed.
	tick = 200 * time.Millisecond
	// sweepInterval is how often that is looked for without a poke.
	sweepInterval = time.Minute
	// maxJobs is how many commands run at once; of a group there is one.
	maxJobs = 2
	// page is how many wanted transcripts one pass looks at.
	page = 1000
	// maxFileWait is how long a turn waits for files, before it waits for their transcripts: its deadline is not later
	// than both, however many messages join it.
	maxFileWait = time.Minute
)

// retryAfter is how long a command that the machine could not run waits before its next attempts: an engine that
// restarts is back after some seconds. A command that itself takes all that the machine gives it looks the same, so the
// attempts are few.
var retryAfter = []time.Duration{time.Second, 3 * time.Second, 9 * time.Second}

// Problems as agents and users read them in place of a transcript.
const (
	problemMissing = "the program that transcribes is not there"
	problemFailed  = "the program that transcribes failed"
	problemEmpty   = "the program that transcribes wrote nothing"
	problemFile    = "the file could not be read"
	problemOff     = "transcripts were switched off"
)

// result is the output of a command, or the problem in words for users, with its error for the log.
type result struct {
	text, problem string
	err           error
}

// Groups knows the settings, users and files of groups.
type Groups interface {
	// Settings is a group's configuration over the instance's; problems are the mistakes in it.
	Settings(folder string) (c groupconfig.Config, problems, err error)
	// Owner is the user of a group's agents, zero for gated's own.
	Owner(folder string) (runtime.User, error)
	// Files opens the files of messages.
	Files() *groupfiles.Files
	// Poked starts turns that wait for nothing any more.
	Poked()
}

// Config of a Worker.
type Config struct {
	Groups   Groups
	Runtimes map[groupconfig.Runtime]runtime.Runtime
	Environ  []string // gated's; commands get PATH, HOME, LANG and TZ of it
	Data     string   // the data folder, absolute
	Redact   func(string) string
	Now      func() time.Time
}

// Worker transcribes.
type Worker struct {
	cfg    Config
	st     *store.Store
	log    *slog.Logger
	ended  *prometheus.CounterVec
	bounds bounds
	retry  []time.Duration
	poked  chan struct{}

	all    sync.WaitGroup
	mu     sync.Mutex
	jobs   map[int64]*job // that run, by transcript
	former map[int64]bool // transcripts whose jobs of an earlier gated may still run
}

// New makes a worker; Run starts it.
func New(cfg Config, st *store.Store, log *slog.Logger, reg prometheus.Registerer) *Worker {
	w := &Worker{cfg: cfg, st: st, log: log, bounds: bounds{maxFile, maxFolder, maxTasks}, retry: retryAfter,
		poked: make(chan struct{}, 1), jobs: map[int64]*job{}, former: map[int64]bool{}}
	w.ended = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "arizuko_transcripts_total", Help: "Audio files that were to be transcribed, by result.",
	}, []string{"result"})
	for _, result := range []string{"done", "failed"} {
		w.ended.WithLabelValues(result)
	}
	reg.MustRegister(w.ended)
	return w
}

// Poke makes the worker look for wanted transcripts.
func (w *Worker) Poke() {
	select {
	case w.poked <- struct{}{}:
	default:
	}
}

// Run transcribes until ctx ends. Then it kills the running commands, which the next gated runs again.
func (w *Worker) Run(ctx context.Context) error {
	defer w.all.Wait()
	former := w.findFormer()
	w.all.Go(func() { w.endFormer(ctx, former) })
	outage := store.NewOutage(w.log, "transcripts")
	for {
		wanted, err := w.pass(ctx)
		wait := sweepInterval
		if outage.Note(ctx, err) != nil || wanted > 0 {
			wait = tick
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.poked:
		case <-time.After(wait):
		}
	}
}

// pass looks at wanted transcripts. It starts commands, and ends transcripts whose time is over.
func (w *Worker) pass(ctx context.Context) (wanted int, err error) {
	all, err := rows.WantedTranscripts(ctx, w.st.Reader, page)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	for id, j := range w.jobs { // all of them are of the oldest page
		if !slices.ContainsFunc(all, func(t rows.WantedTranscript) bool { return t.ID == id }) {
			j.cancel() // its message was deleted meanwhile
		}
	}
	w.mu.Unlock()
	read := map[string]groupconfig.Config{}
	for i := range all {
		if err := w.step(ctx, &all[i], read); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// step ends a wanted transcript, or starts its command, if its time has come. read are the groups' settings that this
// pass has read.
func (w *Worker) step(ctx context.Context, t *rows.WantedTranscript, read map[string]groupconfig.Config) error {
	now := w.cfg.Now().UnixMilli()
	switch {
	case !t.TurnWaits, t.Until != 0 && now >= t.Until:
		return w.end(ctx, t, result{problem: msg.TranscriptLate, err: w.cancel(t.ID)})
	case t.Pending:
		return nil
	case t.File.Path == "" || t.File.Error != "":
		return w.end(ctx, t, result{problem: problemFile})
	}
	settings, known := read[t.Folder]
	if !known {
		own, problems, err := w.cfg.Groups.Settings(t.Folder)
		if err != nil {
			return err
		}
		if problems != nil || own.Transcribe == "" {
			return w.end(ctx, t, result{problem: problemOff, err: problems})
		}
		settings, read[t.Folder] = own, own
	}
	if t.Until == 0 {
		limit := settings.Timeouts.ForTranscripts()
		t.Until = min(now+limit.Milliseconds(), t.TurnCreated+(maxFileWait+limit).Milliseconds())
		hold := func(tx *store.Tx) error { return rows.HoldForTranscript(tx, t.ID, t.TurnID, t.Until, now) }
		if err := w.st.Write(ctx, hold); err != nil {
			return err
		}
	}
	w.start(ctx, t, settings)
	return nil
}

// start runs the command of a transcript unless it runs, or there is no room.
func (w *Worker) start(ctx context.Context, t *rows.WantedTranscript, settings groupconfig.Config) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.jobs) >= maxJobs || w.former[t.ID] {
		return
	}
	for _, other := range w.jobs { // the transcript itself among them
		if other.Folder == t.Folder {
			return
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	j := &job{WantedTranscript: *t, w: w, settings: settings, cancel: cancel}
	w.jobs[t.ID] = j
	w.all.Go(func() {
		defer cancel()
		w.finish(ctx, j)
	})
}

// finish runs a job and stores its end.
func (w *Worker) finish(ctx context.Context, j *job) {
	defer func() {
		if cause := recover(); cause != nil {
			w.log.Error("panic", "step", "transcribing", "row", j.MessageID, "panic", cause, "stack",
				string(debug.Stack()))
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.jobs, j.ID)
	}()
	r := w.attempts(ctx, j)
	failpoint.At(failpoint.Transcribed)
	if ctx.Err() != nil {
		return // gated stops, or the turn waits no longer
	}
	if err := w.end(context.WithoutCancel(ctx), &j.WantedTranscript, r); err != nil {
		w.log.Error("storing a transcript failed; retrying", "row", j.MessageID, "err", err)
	}
}

// attempts runs a job until it ends by itself, and not for a lack of the machine.
func (w *Worker) attempts(ctx context.Context, j *job) result {
	r := j.run(ctx)
	for _, wait := range w.retry {
		if runtime.ClassOf(r.err) != runtime.ClassMachine {
			break
		}
		w.mu.Lock()
		j.failed = r.err
		w.mu.Unlock()
		w.log.Warn("starting a transcription failed; retrying", "row", j.MessageID, "folder", j.Folder, "wait", wait,
			"err", r.err)
		select {
		case <-ctx.Done():
			return r
		case <-time.After(wait):
		}
		r = j.run(ctx)
	}
	return r
}

// end stores the end of a transcript, and lets its turn start.
func (w *Worker) end(ctx context.Context, t *rows.WantedTranscript, r result) error {
	now := w.cfg.Now().UnixMilli()
	stored := false
	err := w.st.Write(ctx, func(tx *store.Tx) (err error) {
		stored, err = rows.EndTranscript(tx, t.ID, r.text, r.problem, now)
		return err
	})
	if err != nil || !stored {
		return err
	}
	failed := r.problem != "" && r.problem != msg.TranscriptSilent
	if !failed {
		w.ended.WithLabelValues("done").Inc()
	} else {
		w.ended.WithLabelValues("failed").Inc()
		w.log.Warn("transcription failed", "row", t.MessageID, "turn", t.TurnID, "folder", t.Folder, "file",
			t.File.Path, "reason", r.problem, "err", r.err)
	}
	w.cfg.Groups.Poked()
	return nil
}

// cancel kills a command, and returns why its last attempt failed, nil if none did.
func (w *Worker) cancel(id int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[id]
	if j == nil {
		return nil
	}
	j.cancel()
	return j.failed
}
