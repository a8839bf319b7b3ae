package transcribe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode"

	"arizuko/gated/internal/rows"
	"arizuko/gated/internal/running/runtime"
	"arizuko/pkg/dataowner"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
)

const (
	// output is the file that the command's output goes to, in the job's folder.
	output = "transcript.txt"
	// watchInterval is how often the size of a job's folder is looked at.
	watchInterval = 500 * time.Millisecond
	// endWait bounds the end of processes that a command has left.
	endWait = 20 * time.Second
)

// job is one command for one file.
type job struct {
	rows.WantedTranscript
	w        *Worker
	settings groupconfig.Config
	cancel   context.CancelFunc
	failed   error // of the last attempt that the machine failed; guarded by the worker's mu
}

func (j *job) run(ctx context.Context) result {
	rt, err := j.runtime()
	if err != nil {
		return result{problem: problemFailed, err: err}
	}
	user, err := j.w.cfg.Groups.Owner(j.Folder)
	if err != nil {
		return result{problem: problemFailed, err: err}
	}
	name := folderName(j.ID, j.settings.Agent.Runtime)
	printed, err := j.prepare(name, user)
	defer func() {
		if err := runtime.RemoveFolder(j.w.parent(), name); err != nil {
			j.w.log.Warn("removing the folder of a transcription failed; the next start retries", "folder", name, "err",
				err)
		}
	}()
	if err != nil {
		return result{problem: problemFile, err: err}
	}
	defer printed.Close()
	exit, err := j.execute(ctx, rt, user, filepath.Join(j.w.parent(), name))
	if _, ok := rt.(runtime.Process); ok { // for children that have left the process group
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
		defer cancel()
		_, endErr := rt.End(ending, runtime.Orphan{RunID: runID(j.ID)})
		err = errors.Join(err, endErr)
	}
	if failed := failure(exit, err); failed.problem != "" {
		return failed
	}
	content, err := io.ReadAll(io.NewSectionReader(printed, 0, rows.MaxTranscript+1))
	if err != nil {
		return result{problem: problemFailed, err: err}
	}
	if len(strings.TrimSpace(string(content))) == 0 {
		return result{problem: problemEmpty, err: said(exit)}
	}
	if !hasWords(string(content)) {
		return result{problem: msg.TranscriptSilent}
	}
	return result{text: string(content)}
}

// remark matches notes of programs about sounds, silence and times: [BLANK_AUDIO], (silence), *music*, 【音楽】.
var remark = regexp.MustCompile(`\[[^][]*\]|\([^()]*\)|\*[^*]*\*|（[^（）]*）|【[^【】]*】|<\|[^|]*\|>`)

// hasWords reports whether a transcript has more than remarks.
func hasWords(text string) bool {
	return strings.ContainsFunc(remark.ReplaceAllString(text, ""), func(r rune) bool {
		return r != unicode.ReplacementChar && (unicode.IsLetter(r) || unicode.IsNumber(r))
	})
}

// runID identifies the job of a transcript to runtimes. Those of agents are positive.
func runID(transcript int64) int64 { return -transcript }

// runtime is that of the group's agents, without a network where it has one of its own.
func (j *job) runtime() (runtime.Runtime, error) {
	switch rt := j.w.cfg.Runtimes[j.settings.Agent.Runtime].(type) {
	case nil:
		return nil, fmt.Errorf("unknown runtime %q", j.settings.Agent.Runtime)
	case runtime.Sandbox:
		rt.Network, rt.Forward = runtime.NetworkNone, ""
		return rt, nil
	case runtime.Docker:
		rt.Network = string(runtime.NetworkNone)
		return rt, nil
	default:
		return rt, nil
	}
}

// prepare makes the job's folder, with a copy of the file and an empty one for the output, which it returns open.
func (j *job) prepare(name string, user runtime.User) (printed *os.File, err error) {
	parent, err := runtime.OpenTemp(j.w.parent())
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := errors.Join(runtime.RemoveFolder(j.w.parent(), name), parent.Mkdir(name, 0o700)); err != nil {
		return nil, err
	}
	folder, err := dataowner.OpenFolder(parent, name)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	if err := j.w.cfg.Groups.Files().CopyTo(folder, j.fileName(), j.File.Path, user); err != nil {
		return nil, err
	}
	printed, err = folder.OpenFile(output, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil || user.IsZero() {
		return printed, err
	}
	if err := errors.Join(printed.Chown(user.UID, user.GID), parent.Lchown(name, user.UID, user.GID)); err != nil {
		return nil, errors.Join(err, printed.Close())
	}
	return printed, nil
}

// fileName is a name without anything of the sender's but a known extension.
func (j *job) fileName() string {
	ext := msg.AudioExtension(j.File.Name)
	if own := strings.ToLower(path.Ext(j.File.Name)); own == ".mp4" || own == ".webm" {
		ext = own
	}
	if ext != "" {
		return "audio" + ext
	}
	kind, _, _ := strings.Cut(strings.ToLower(j.File.MIME), ";")
	of := map[string]string{
		"audio/opus": ".opus", "audio/mpeg": ".mp3", "audio/mp4": ".m4a", "audio/x-m4a": ".m4a", "audio/aac": ".aac",
		"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/wave": ".wav", "audio/webm": ".webm", "audio/flac": ".flac",
		"audio/amr": ".amr", "video/mp4": ".mp4", "video/webm": ".webm",
	}
	return "audio" + cmp.Or(of[strings.TrimSpace(kind)], ".ogg")
}

// execute runs the command and waits for its end.
func (j *job) execute(ctx context.Context, rt runtime.Runtime, user runtime.User, dir string) (runtime.Exit, error) {
	limits := j.settings.Limits
	limits.PIDs = int(j.w.bounds.tasks)
	script, err := j.script(user)
	if err != nil {
		return runtime.Exit{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	network := runtime.Network(j.settings.Agent.Network)
	if network == runtime.NetworkAsk { // there is no turn yet in which a user could be asked
		network = runtime.NetworkNone
	}
	proc, err := rt.Start(ctx, runtime.Spec{
		RunID: runID(j.ID), Command: script, Image: j.settings.Agent.Image, Limits: limits, Network: network,
		Dir: dir, User: user, Env: runtime.Environ(j.w.cfg.Environ, nil), LogPath: os.DevNull, Redact: j.w.cfg.Redact,
	})
	if err != nil {
		return runtime.Exit{}, err
	}
	failpoint.At(failpoint.Transcribing)
	proc.CloseInput()
	watch := time.NewTicker(watchInterval)
	defer watch.Stop()
	var full error
	for {
		select {
		case ev := <-proc.Events():
			if ev.Exit != nil {
				return *ev.Exit, full
			}
		case <-watch.C:
			if full == nil && size(dir, runtime.TempOf(rt, runID(j.ID))) > j.w.bounds.folder {
				full = fmt.Errorf("it has written more than %d MiB", j.w.bounds.folder>>20)
				cancel()
			}
		}
	}
}

const exitNotFound = 127

// failure is why a command failed; it is empty if it did not.
func failure(exit runtime.Exit, err error) result {
	if err == nil && exit.Err == nil && exit.Code == 0 && exit.Signal == 0 {
		return result{}
	}
	if err == nil {
		if err = exit.Err; err == nil {
			err = errors.New(exit.Reason())
		}
		if line := said(exit); line != nil {
			err = fmt.Errorf("%w: %w", err, line)
		}
	}
	if exit.Code == exitNotFound {
		return result{problem: problemMissing, err: err}
	}
	return result{problem: problemFailed, err: err}
}

// said is the last line that a command wrote on standard error, nil for none. whisper-cli exits with 0 when it cannot
// read a file.
func said(exit runtime.Exit) error {
	text := strings.TrimSpace(exit.StderrTail)
	if text == "" {
		return nil
	}
	return errors.New(text[strings.LastIndexByte(text, '\n')+1:])
}
