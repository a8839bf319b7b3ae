// Package chatsim simulates chat platforms and their users for tests of whole instances. The
// platforms are fakes that speak the real protocols to the daemons that connect to them.
package chatsim

import (
	"math/rand/v2"
	"time"
)

// Platform records the actions of its users and the calls that it received. It is safe for concurrent use, except
// for the methods of ConversationMaker.
type Platform interface {
	Info() Info
	ConversationMaker
	Users
	Presser
	Transport
	Network
	FaultInjector
}

// Size is the number of chats by kind. Platforms accept few messages per second and chat, so high
// load needs many chats.
type Size struct{ DMs, Groups int }

// Info describes a platform.
type Info struct {
	Daemon    string // the adapter that connects to it
	Platform  string // the prefix of its JIDs
	DMPattern string // matches the rooms that are DMs, as routes do
	// Split cuts the content of an outbound row into the parts that should arrive.
	Split func(content string) []string

	TokenEnv         string // the environment variable that holds the bot's token
	Surfaces                // the surface that an agent sees, by conversation
	LinksReplies     bool   // an answer in a group links to its question; otherwise it goes to a thread
	FindsMessages    bool   // the adapter can look up whether a message arrived
	ReportsDeletions bool   // the bot gets an event when a message is deleted
}

// Surfaces are the names of surfaces by kind of conversation.
type Surfaces struct{ DM, Group, Thread string }

// ConversationMaker creates conversations, each with a user who writes there.
type ConversationMaker interface {
	NewDM(name string) Conversation
	NewGroup(title string) Conversation
	// NewThread creates a thread or a topic in a new group.
	NewThread(title string) Conversation
	// Appoint makes the user of a conversation an administrator. Where users own groups and guilds, they are that.
	Appoint(c Conversation)
}

// markRoom is the room that adapters leave in each part for the mark of a copy, in characters.
const markRoom = len("(possibly sent twice) ")

// MarkedCopy is the text of a part that may be a duplicate.
func MarkedCopy(text string) string { return "(possibly sent twice) " + text }

// Users are the simulated users of a platform.
type Users interface {
	// Conversations lists those that the platform was created with.
	Conversations() []Conversation
	// Do performs an action and returns the id of the new message, if there is one.
	Do(a Action) (id string, err error)
	// Vote makes the user of a conversation vote in the bot's poll of a message, for the option of a number from 1.
	Vote(c Conversation, poll string, option int) error
	// AllAcknowledged reports whether the adapter has acknowledged every event.
	AllAcknowledged() bool
}

// Presser presses buttons under messages of the bot, and sees its reactions to messages of users.
type Presser interface {
	Reactor
	// Buttons are the labels of the buttons under a message and its text.
	Buttons(c Conversation, message string) (labels []string, text string)
	// Press presses a button by its label, as the user of the conversation or as another one. It returns an id of the
	// press.
	Press(c Conversation, message, label string, other bool) (press string, err error)
	// RefuseButtons makes the platform refuse the next message of the bot because of its buttons.
	RefuseButtons()
	// Stoppable lists the messages of a conversation that have a button which stops an agent.
	Stoppable(c Conversation) (messages []string)
	// PressAnswer is the text that only the user who pressed reads, "" for none. ok is false until the adapter has
	// answered.
	PressAnswer(c Conversation, press string) (text string, ok bool)
}

// Reactor shows the bot's reactions to messages of users.
type Reactor interface {
	// BotReactions are the emoji, or the names of emoji, with which the bot has reacted to a message.
	BotReactions(c Conversation, message string) []string
	// ForbidReactions makes the platform refuse reactions of the bot in a chat.
	ForbidReactions(c Conversation)
}

// Transport connects a platform with its adapter.
type Transport interface {
	// Serve listens on an address of the host and returns the adapter's environment.
	Serve(host string) (env []string, err error)
	// Connected reports whether the adapter is connected, so that it gets events.
	Connected() bool
	// Arrivals lists the adapter's messages, in order of arrival. A preview that became an answer arrived when it did.
	Arrivals() []Arrival
	// LeftPreviews lists the previews of answers that are there and say nothing.
	LeftPreviews() []Arrival
	// ShowsWorking reports whether the bot has shown in a conversation that it is working.
	ShowsWorking(c Conversation) bool
	// RateLimited counts the calls refused with 429.
	RateLimited() int
	Close() error
}

// Network is the network between a platform and its adapter.
type Network interface {
	// SetListening with false makes the platform refuse connections; with true it listens again, on the same address.
	SetListening(ok bool) error
	// SetReachable with false resets all connections, and later ones before they are answered.
	SetReachable(ok bool)
	// SetAnswering with false closes all connections, and makes the platform accept new ones without an
	// answer.
	SetAnswering(ok bool)
	// SetPaging closes all connections, and answers all requests with a proxy's page of a status, until it is 0.
	SetPaging(status int)
}

// FaultInjector makes things fail.
type FaultInjector interface {
	// InjectRandomFault starts a fault that ends by itself, and describes it.
	InjectRandomFault(random *rand.Rand) string
	// ClearFaults ends the faults of calls.
	ClearFaults()
	// SetTokenValid revokes or restores the bot's token.
	SetTokenValid(ok bool)
	// Removals creates a conversation for each way in which the bot can lose access to one.
	Removals() []Removal
}

// Removal takes a conversation away from the bot.
type Removal struct {
	Name         string
	Conversation Conversation
	LeavesChat   bool // only a part of the chat is gone, and answers go to the rest of it
	Apply        func()
}

// Conversation is a DM, a group or a thread that a simulated user writes in.
type Conversation struct {
	Chat, Thread, Topic string // Chat is a JID
	NeedsMention        bool   // only a mention is certain to be answered
	NoChildGroup        bool   // the answering group has no child to call by name
	Mutates             bool   // users edit and delete messages and stop agents here
}

// Action is an action of a user in a conversation.
type Action struct {
	Conversation
	Verb, Text string
	Target     string // the message that is edited, deleted, reacted to or replied to
	File       *File  // attached to the message
	Bot        bool   // the user is another bot
}

// File is an attachment.
type File struct {
	Name  string
	Data  []byte
	Voice bool // recorded in the app, which names it
}

// Arrival is a message as users of the platform see it.
type Arrival struct {
	ID, Chat, Thread, Text string // the question of a poll is its text
	ReplyTo                string // the message that it links to
	Files                  []File
	At                     time.Time // when the request arrived
}
