package msg

import "cmp"

// Reminder is one row of reminders. It fires once, at DueAt, or again and again, by Cron.
// Times are unix ms; zero values stand for NULL.
type Reminder struct {
	ID        int64
	Folder    string // the group that made it
	ChatJID   string // where its messages go
	ThreadID  string // the thread of the chat into which they go, see ReminderThread
	Topic     string // in which the agent runs, and which the messages carry if they can
	Kind      ReminderKind
	Body      string
	DueAt     int64
	Cron      string // five fields
	TimeZone  string // IANA name, of Cron and for display
	Missed    Missed
	State     ReminderState
	NextSlot  int64 // when it fires next
	CreatedBy string
	UpdatedBy string
	Error     string // why gated ended it itself
	CreatedAt int64
	UpdatedAt int64

	// The chain of turns in which it was made: 0 for a turn whose root is gone.
	RootTurnID int64
	Depth      int
}

// Payer is the sender whose request it serves: the last one who set its text or time.
func (r *Reminder) Payer() string { return cmp.Or(r.UpdatedBy, r.CreatedBy) }

// ReminderKind is the action of a reminder.
type ReminderKind string

// Kinds of reminders.
const (
	ReminderText   ReminderKind = "text"   // its body is sent to the chat
	ReminderPrompt ReminderKind = "prompt" // its body is a prompt for the agent, whose answer is sent
)

// Missed says how to treat slots that passed while gated did not run.
type Missed string

// Values of Missed.
const (
	MissedSkip Missed = "skip" // nothing
	MissedOne  Missed = "one"  // the last of them fires late
)

// ReminderState is the state of a reminder.
type ReminderState string

// States of a reminder.
const (
	ReminderActive    ReminderState = "active"
	ReminderDone      ReminderState = "done" // no slot is left
	ReminderCancelled ReminderState = "cancelled"
)

// ReminderThread is the thread into which a reminder goes that was made in a thread: the same one. In a Slack channel
// it goes to the top level, since few users still follow the thread.
func ReminderThread(chatJID string, kind ChatKind, threadID string) string {
	if FamilyOf(chatJID) == "slack" && kind != ChatDM {
		return ""
	}
	return threadID
}

// Place is the topic that the reminder's messages carry.
func (r *Reminder) Place() string { return Place(r.ThreadID, BroadcastPlace(r.ChatJID, r.Topic)) }

// BroadcastPlace is the topic that a message outside of any thread carries: a named topic, and in the
// web chat any, since topics are tabs there. A thread's id is none.
func BroadcastPlace(chatJID, topic string) string {
	platform, _ := SplitJID(chatJID)
	if platform == PlatformWeb || len(topic) > 0 && topic[0] == '#' {
		return topic
	}
	return ""
}
