package msg

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ContextObject is one row of context_objects: something that a chat's conversation is about,
// until ActiveUntil. ID is unique within the chat. Times are unix ms.
type ContextObject struct {
	ChatJID         string
	ID              string // see ContextObjectID
	Kind            ContextKind
	Topic           string // of the turn that made it active
	SourceMessageID int64  // row of messages, 0 for none
	Label           string // what to call it, "" for none
	URL             string
	CreatedAt       int64 // when it became active
	LastTouchedAt   int64
	Reasons         ContextReasons // the events so far
	CreatedBy       string         // sender whose it is, "" if unknown
	CreatedByBot    bool
	ClosedAt        int64 // of a poll: when it was closed, 0 while it is open
	DueAt           int64 // of a reminder: when it fires next, 0 if it does not
	ActiveUntil     int64 // Forever for an open poll
}

// Forever is the ActiveUntil of an object that no time ends.
const Forever = math.MaxInt64

// OpenPoll reports whether the object is a poll that takes votes.
func (o *ContextObject) OpenPoll() bool { return o.Kind == ContextPoll && o.ClosedAt == 0 }

// ContextObjectID is the id of an object: source is the row id of the message, poll or reminder
// that it stands for.
func ContextObjectID(kind ContextKind, source int64) string {
	return string(kind) + ":" + strconv.FormatInt(source, 10)
}

// ContextKind is the kind of a context object.
type ContextKind string

// Kinds of context objects.
const (
	ContextArticle    ContextKind = "article"
	ContextLink       ContextKind = "link"
	ContextImage      ContextKind = "media.image"
	ContextVideo      ContextKind = "media.video"
	ContextVoice      ContextKind = "media.voice"
	ContextDocument   ContextKind = "media.document"
	ContextPDF        ContextKind = "media.pdf"
	ContextPoll       ContextKind = "poll"
	ContextReminder   ContextKind = "reminder"
	ContextSummary    ContextKind = "summary"
	ContextBotMessage ContextKind = "bot_message"
	ContextMessage    ContextKind = "message"
)

// ContextKinds returns all kinds.
func ContextKinds() []ContextKind {
	return []ContextKind{ContextArticle, ContextLink, ContextImage, ContextVideo, ContextVoice, ContextDocument,
		ContextPDF,
		ContextPoll, ContextReminder, ContextSummary, ContextBotMessage, ContextMessage}
}

// MediaKind is the kind of a file of a MIME type.
func MediaKind(mime string) ContextKind {
	switch top, _, _ := strings.Cut(mime, "/"); {
	case top == "image":
		return ContextImage
	case top == "video":
		return ContextVideo
	case top == "audio":
		return ContextVoice
	case mime == "application/pdf":
		return ContextPDF
	}
	return ContextDocument
}

// IsMedia reports whether the kind is one of media.
func (k ContextKind) IsMedia() bool { return strings.HasPrefix(string(k), "media.") }

// ContextTTL is the column ttl_class: which setting bounds the life of an object.
type ContextTTL string

// Classes of TTLs.
const (
	ContextTTLMedium ContextTTL = "medium"
	ContextTTLMedia  ContextTTL = "media"
	ContextTTLShort  ContextTTL = "short"
	ContextTTLPoll   ContextTTL = "poll"
)

// TTL is the class of the kind.
func (k ContextKind) TTL() ContextTTL {
	switch k {
	case ContextArticle, ContextLink, ContextSummary:
		return ContextTTLMedium
	case ContextImage, ContextVideo, ContextVoice, ContextDocument, ContextPDF:
		return ContextTTLMedia
	case ContextPoll:
		return ContextTTLPoll
	}
	return ContextTTLShort
}

// ContextReasons is a set of reason codes: why an object is active, and the facts for and
// against it. Its JSON is the list of the codes, in this order.
type ContextReasons uint32

// The reasons. Only those that begin with Activated are stored.
const (
	TouchedRecently ContextReasons = 1 << iota
	ActivatedBySummary
	ActivatedByURLDiscussion
	ActivatedByMediaInspection
	ActivatedByPollCreate
	ActivatedByPollList
	ActivatedByReminderCreate
	ActivatedByReminderList
	ActivatedByReminderUpdate
	ActivatedByResolver
	ActivatedByFollowup
	SameReplyChain
	SameTopic
	OpenPoll
	FutureReminder
	SenderOwned
	ChatScopeFallback
	NearExpiry
)

func contextReasonCodes() [18]string {
	return [...]string{"touched_recently", "activated_by_summary", "activated_by_url_discussion",
		"activated_by_media_inspection",
		"activated_by_poll_create", "activated_by_poll_list", "activated_by_reminder_create",
		"activated_by_reminder_list",
		"activated_by_reminder_update", "activated_by_resolver", "activated_by_followup", "same_reply_chain",
		"same_topic",
		"open_poll", "future_reminder", "sender_owned", "chat_scope_fallback", "near_expiry"}
}

// Codes returns the reasons of the set, never nil.
func (r ContextReasons) Codes() []string {
	codes := []string{}
	for i, code := range contextReasonCodes() {
		if r&(1<<i) != 0 {
			codes = append(codes, code)
		}
	}
	return codes
}

// MarshalJSON is the list of codes.
func (r ContextReasons) MarshalJSON() ([]byte, error) { return json.Marshal(r.Codes()) }

// UnmarshalJSON takes a list of codes. It skips unknown ones, which a later version may have stored.
func (r *ContextReasons) UnmarshalJSON(b []byte) error {
	var codes []string
	if err := json.Unmarshal(b, &codes); err != nil {
		return fmt.Errorf("reasons: %w", err)
	}
	*r = 0
	for i, known := range contextReasonCodes() {
		if slices.Contains(codes, known) {
			*r |= 1 << i
		}
	}
	return nil
}
