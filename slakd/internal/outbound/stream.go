package outbound

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"arizuko/pkg/adapter"
	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/slakd/internal/slackapi"
)

const (
	// maxStreaming is how long a stream is appended to: Slack ends it after about five minutes.
	maxStreaming = 4 * time.Minute
	// maxStreamText is how much text a stream gets, in characters: Slack takes 12,000 at once.
	maxStreamText = 11_000
	// maxStreamTools is how many tools a stream shows, the newest.
	maxStreamTools = 20
	// previewIdle is how long a preview that is not changed takes part in the limits that previews share.
	previewIdle = 30 * time.Second
	// maxPreviews bounds the previews that are remembered.
	maxPreviews = 1000
)

// preview is the message of one, as far as this process knows it. The shell makes one call about it at a
// time; the fields that count reads are changed under the lock of previews.
type preview struct {
	in     store.Lane
	usedAt time.Time

	isStream bool
	isSpent  bool // the stream is not appended to any more
	began    time.Time
	plan     string // its title
	text     string // all that was appended
	tasks    map[string]slackgo.TaskUpdateChunk
}

// next returns the chunks that a stream lacks to show a preview. ok is false if it cannot show it.
func (v *preview) next(p *adapter.Preview, now time.Time) (chunks []slackgo.StreamChunk, ok bool) {
	text := harmless(p.Text)
	if !v.isStream || v.isSpent || p.Mode != msg.PreviewText || now.Sub(v.began) > maxStreaming ||
		!strings.HasPrefix(text, v.text) || utf8.RuneCountInString(text) > maxStreamText {
		return nil, false
	}
	title := cmp.Or(harmless(p.Line), adapter.PreviewStart)
	if p.Line == "" && text != "" {
		title = "Writing the answer…"
	}
	if title != v.plan {
		chunks = append(chunks, slackgo.NewPlanUpdateChunk(title))
	}
	for _, task := range tasksOf(p) {
		if known := v.tasks[task.ID]; known.Title != task.Title || known.Status != task.Status {
			chunks = append(chunks, task)
		}
	}
	if more := text[len(v.text):]; more != "" {
		chunks = append(chunks, slackgo.NewMarkdownTextChunk(more))
	}
	return chunks, true
}

// taken notes the chunks that a stream shows now.
func (v *preview) taken(chunks []slackgo.StreamChunk) {
	for _, chunk := range chunks {
		switch c := chunk.(type) {
		case slackgo.PlanUpdateChunk:
			v.plan = c.Title
		case slackgo.MarkdownTextChunk:
			v.text += c.Text
		case slackgo.TaskUpdateChunk:
			if v.tasks == nil {
				v.tasks = map[string]slackgo.TaskUpdateChunk{}
			}
			v.tasks[c.ID] = c
		}
	}
}

// tasksOf are the steps of the plan and the newest tools as tasks of a stream.
func tasksOf(p *adapter.Preview) (all []slackgo.TaskUpdateChunk) {
	add := func(id, title string, status slackgo.TaskCardStatus) {
		if title = harmless(title); title != "" {
			task := slackgo.NewTaskUpdateChunk(id, title)
			task.Status = status
			all = append(all, task)
		}
	}
	for i, step := range p.Plan {
		add(fmt.Sprint("step ", i), step.Content, map[agentproto.StepStatus]slackgo.TaskCardStatus{
			agentproto.StepInProgress: slackgo.TaskCardStatusInProgress,
			agentproto.StepCompleted:  slackgo.TaskCardStatusComplete,
		}[step.Status])
	}
	for _, tool := range p.Tools[max(0, len(p.Tools)-maxStreamTools):] {
		add("tool "+tool.ID, tool.Title, map[agentproto.ToolStatus]slackgo.TaskCardStatus{
			agentproto.ToolRunning: slackgo.TaskCardStatusInProgress,
			agentproto.ToolDone:    slackgo.TaskCardStatusComplete, agentproto.ToolFailed: slackgo.TaskCardStatusError,
		}[tool.Status])
	}
	for i := range all {
		all[i].Status = cmp.Or(all[i].Status, slackgo.TaskCardStatusPending)
	}
	return all
}

// harmless is a text whose mentions notify no one: a word joiner, which is not shown, follows the bracket. The
// result for the beginning of a text is the beginning of the result for the text.
func harmless(text string) string {
	const joiner = "\u2060"
	return strings.NewReplacer("<@", "<"+joiner+"@", "<!", "<"+joiner+"!", "<#", "<"+joiner+"#").Replace(text)
}

// previews are the messages that show the progress of turns, by their ts. Its methods are safe for concurrent use.
type previews struct {
	mu      sync.Mutex
	byTS    map[string]*preview
	refused adapter.Memo[store.Lane, bool] // where Slack takes no streams
	noneAt  string                         // why it takes none at all, "" if it does
	begun   []start                        // in the last minute
}

// start is when a preview was begun.
type start struct {
	at       time.Time
	isStream bool
}

// permit counts a preview that is to begin, as a stream if that is wanted and there were not too many. A wait above 0
// is how long none may begin.
func (v *previews) permit(wanted bool, now time.Time) (stream bool, wait time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.begun = slices.DeleteFunc(v.begun, func(s start) bool { return now.Sub(s.at) >= time.Minute || s.at.After(now) })
	if len(v.begun) >= maxBegun {
		return false, time.Minute - now.Sub(v.begun[0].at)
	}
	streams := 0
	for _, s := range v.begun {
		if s.isStream {
			streams++
		}
	}
	stream = wanted && streams < maxStarted
	v.begun = append(v.begun, start{now, stream})
	return stream, 0
}

func (v *previews) add(ts string, p *preview) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.usedAt = time.Now()
	if v.byTS == nil {
		v.byTS = map[string]*preview{}
	}
	for other, known := range v.byTS {
		if len(v.byTS) >= maxPreviews && time.Since(known.usedAt) > previewIdle {
			delete(v.byTS, other)
		}
	}
	v.byTS[ts] = p
}

// find returns the preview of a message, nil if it is not known.
func (v *previews) find(ts string) *preview {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byTS[ts]
}

// of is the same of a message that is being changed. One of before the start may be a stream, whose text is not
// known.
func (v *previews) of(ts string, in store.Lane) *preview {
	known := v.find(ts)
	if known == nil {
		known = &preview{in: in, isStream: true, isSpent: true}
	}
	v.add(ts, known)
	return known
}

// end notes that a stream is appended to no more, or that it was stopped.
func (v *previews) end(known *preview, stopped bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if known != nil {
		known.isSpent, known.isStream = true, known.isStream && !stopped
	}
}

func (v *previews) forget(ts string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byTS, ts)
}

// count counts the previews that were changed lately, streams and others, and says whether that of a lane is, or would
// be, a stream.
func (v *previews) count(in store.Lane) (streams, others int, isStream bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	isStream = in.ThreadID != "" && v.noneAt == "" && !v.refused.Get(in)
	for _, p := range v.byTS {
		if p.in == in {
			isStream = p.isStream && !p.isSpent && time.Since(p.began) <= maxStreaming
		}
		switch {
		case time.Since(p.usedAt) > previewIdle:
		case p.isStream:
			streams++
		default:
			others++
		}
	}
	return streams, others, isStream
}

// streamsRefused reports whether Slack takes no streams in a lane.
func (v *previews) streamsRefused(in store.Lane) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.noneAt != "" || v.refused.Get(in)
}

// refuseStreams remembers that Slack takes no streams: in a lane, or anywhere if that is how it has refused one. It
// reports whether an operator has to know.
func (v *previews) refuseStreams(in store.Lane, err error) (isNews bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch code := slackapi.Code(err); code {
	case "": // this turn has no user to stream to
	case "missing_scope", "unknown_method", "not_allowed_token_type", "feature_not_enabled", "not_an_agent",
		"method_deprecated":
		v.noneAt, isNews = code, v.noneAt == ""
	default:
		v.refused.Put(in, true)
	}
	return isNews
}
