// Package contextobjects keeps the active context objects of each chat: the things that its conversation is about.
// An event makes an object active, a TTL ends it. They are rows of table context_objects. One ranking serves all
// tools. It is deterministic: the same objects, query and time give the same answer.
package contextobjects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/msg"
)

// The descriptor of an object, and its parts.
type (
	Object  = msg.ContextObject
	Kind    = msg.ContextKind
	Reasons = msg.ContextReasons
)

// Event makes an object active. Nothing else does: not an attachment that is handed over,
// an old link, a mention, or that something is recent.
type Event string

// Events.
const (
	ArticleSummarized  Event = "article_summarized"
	URLDiscussed       Event = "url_discussed"
	MediaInspected     Event = "media_inspected"
	PollCreated        Event = "poll_created"
	PollListed         Event = "poll_listed"
	ReminderCreated    Event = "reminder_created"
	ReminderListed     Event = "reminder_listed"
	ReminderUpdated    Event = "reminder_updated"
	SummaryReused      Event = "summary_reused"
	ResolvedByResolver Event = "resolved_by_resolver"
	FollowupAttached   Event = "followup_attached"
)

// Rule returns the reason code of an event, 0 for an unknown event, and the kinds that it can be about.
func (e Event) Rule() (Reasons, []Kind) {
	switch e {
	case ArticleSummarized, SummaryReused:
		return msg.ActivatedBySummary, []Kind{msg.ContextArticle, msg.ContextLink, msg.ContextSummary}
	case URLDiscussed:
		return msg.ActivatedByURLDiscussion, []Kind{msg.ContextArticle, msg.ContextLink}
	case MediaInspected:
		return msg.ActivatedByMediaInspection, []Kind{msg.ContextImage, msg.ContextVideo, msg.ContextVoice,
			msg.ContextDocument, msg.ContextPDF}
	case PollCreated:
		return msg.ActivatedByPollCreate, []Kind{msg.ContextPoll}
	case PollListed:
		return msg.ActivatedByPollList, []Kind{msg.ContextPoll}
	case ReminderCreated:
		return msg.ActivatedByReminderCreate, []Kind{msg.ContextReminder}
	case ReminderListed:
		return msg.ActivatedByReminderList, []Kind{msg.ContextReminder}
	case ReminderUpdated:
		return msg.ActivatedByReminderUpdate, []Kind{msg.ContextReminder}
	case ResolvedByResolver:
		return msg.ActivatedByResolver, msg.ContextKinds()
	case FollowupAttached: // a reminder has no message to name it by; the resolver touches it
		return msg.ActivatedByFollowup,
			slices.DeleteFunc(msg.ContextKinds(), func(k Kind) bool { return k == msg.ContextReminder })
	}
	return 0, nil
}

// AgentEvents returns the events that agents report themselves. The others belong to a tool.
func AgentEvents() []Event {
	return []Event{ArticleSummarized, URLDiscussed, MediaInspected, SummaryReused, FollowupAttached}
}

// explicit are the reasons of all events but the resolver's.
const explicit = msg.ActivatedBySummary | msg.ActivatedByURLDiscussion | msg.ActivatedByMediaInspection |
	msg.ActivatedByPollCreate | msg.ActivatedByPollList | msg.ActivatedByReminderCreate | msg.ActivatedByReminderList |
	msg.ActivatedByReminderUpdate | msg.ActivatedByFollowup

// TTLs are how long objects stay active.
type TTLs struct {
	Medium    time.Duration // article, summary, link
	Media     time.Duration
	Short     time.Duration // reminder, bot_message, message
	PollGrace time.Duration // a poll after it was closed
	Max       time.Duration // from creation; not for polls
}

func (t TTLs) of(kind Kind) time.Duration {
	switch kind.TTL() {
	case msg.ContextTTLMedium:
		return t.Medium
	case msg.ContextTTLMedia:
		return t.Media
	case msg.ContextTTLPoll:
		return t.PollGrace
	}
	return t.Short
}

// until is when the object ends if it was touched last at LastTouchedAt.
func (t TTLs) until(o *Object) int64 {
	switch {
	case o.OpenPoll():
		return msg.Forever
	case o.Kind == msg.ContextPoll:
		return o.ClosedAt + t.PollGrace.Milliseconds()
	}
	return min(o.LastTouchedAt+t.of(o.Kind).Milliseconds(), o.CreatedAt+t.Max.Milliseconds())
}

// Weights are the points that each fact adds to an object's score.
type Weights struct {
	ReplyChain int // its message is in the reply chain
	Topic      int // the caller's topic
	Recent     int // just touched, falling to 0 over the TTL
	Explicit   int // an event other than the resolver's made it active
	Kind       int // the caller asked for its kind
	Open       int // an open poll or a reminder that is to fire
	Owned      int // the sender's own
	Fallback   int // at most 0: found only because the caller's topic is missing
	NearExpiry int // at most 0: in the last fifth of its TTL
}

// DefaultWeights returns the default of CONTEXT_WEIGHTS.
func DefaultWeights() Weights {
	return Weights{ReplyChain: 100, Topic: 60, Recent: 30, Explicit: 20, Kind: 20, Open: 15, Owned: 10, Fallback: -30,
		NearExpiry: -15}
}

// maxWeight bounds a weight, so that no sum overflows.
const maxWeight = 1_000_000

type namedWeight struct {
	name  string
	value *int
}

func (w *Weights) named() []namedWeight {
	return []namedWeight{{"reply_chain", &w.ReplyChain}, {"topic", &w.Topic}, {"recent", &w.Recent},
		{"explicit", &w.Explicit},
		{"kind", &w.Kind}, {"open", &w.Open}, {"owned", &w.Owned}, {"fallback", &w.Fallback},
		{"near_expiry", &w.NearExpiry}}
}

// UnmarshalText reads name=number pairs separated by commas. Weights that it does not name have
// their default.
func (w *Weights) UnmarshalText(text []byte) error {
	all := DefaultWeights()
	named := all.named()
	for pair := range strings.SplitSeq(string(text), ",") {
		name, number, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if name == "" && number == "" {
			continue
		}
		i := slices.IndexFunc(named, func(n namedWeight) bool { return n.name == name })
		if i < 0 {
			return fmt.Errorf("unknown weight %q: the weights are %s", name, DefaultWeights())
		}
		n, err := strconv.Atoi(number)
		penalty := &all.Fallback == named[i].value || &all.NearExpiry == named[i].value
		switch {
		case err != nil || n < -maxWeight || n > maxWeight:
			return fmt.Errorf("weight %q: %q is not a whole number from -%d to %d", name, number, maxWeight, maxWeight)
		case penalty && n > 0:
			return fmt.Errorf("weight %q: %d is above 0", name, n)
		case !penalty && n < 0:
			return fmt.Errorf("weight %q: %d is below 0", name, n)
		}
		*named[i].value = n
	}
	if all.highest(true) == 0 {
		return fmt.Errorf("at least one weight must be above 0")
	}
	*w = all
	return nil
}

func (w Weights) String() string {
	pairs := make([]string, 0, 9)
	for _, n := range w.named() {
		pairs = append(pairs, n.name+"="+strconv.Itoa(*n.value))
	}
	return strings.Join(pairs, ",")
}

// MarshalText is the same as String.
func (w Weights) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// highest is the highest possible score. In a chat without topics no object can have the topic's
// weight.
func (w Weights) highest(topics bool) int {
	sum := w.ReplyChain + w.Recent + w.Explicit + w.Kind + w.Open + w.Owned
	if topics {
		sum += w.Topic
	}
	return sum
}
