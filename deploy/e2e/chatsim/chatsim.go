// Package world has chat platforms with people in them, for trials of whole instances: fakes that
// speak the platforms' own protocols, in front of the daemons that connect to them.
package chatsim

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// World is a platform that remembers what its people did, and what arrived. It is safe for
// concurrent use, but for the making of places.
type World interface {
	About() About
	Rooms
	People
	Wire
	Trouble
}

// About is what is to be known of a platform.
type About struct {
	Daemon   string // who connects to it
	Platform string // how addresses of its chats begin
	DMs      string // and what the rooms look like that are DMs, as a pattern of routes
	// Cut is what the parts of an outbound row look like.
	Cut func(content string) []string

	Token     string // the variable of the environment that holds the bot's token
	Surfaces         // what agents are told of where they are read
	Replies   bool   // an answer in a group is linked to what it answers; else it is in a thread off it
	Finds     bool   // a message that may have arrived can be looked for
	Deletions bool   // the bot is told that a message was deleted
}

// Surfaces are where an answer is read, by where somebody asked.
type Surfaces struct{ DM, Group, Thread string }

// Rooms are made where they are needed, each with somebody in it who writes there.
type Rooms interface {
	NewDM(name string) Place
	NewGroup(title string) Place
	// NewThread makes a thread, or a topic, in a group that is made for it.
	NewThread(title string) Place
}

// Again is what a part says that may be a copy.
func Again(text string) string { return "(possibly sent twice) " + text }

// People are those who write there.
type People interface {
	// Places are where they write.
	Places() []Place
	// Do has somebody do something, and returns the id of the message they wrote.
	Do(a Act) (id string, err error)
	// Quiet says whether the adapter has confirmed all that they did.
	Quiet() bool
}

// Wire is what lies between the platform and its adapter.
type Wire interface {
	// Serve opens the platform on a machine's address, and returns what its adapter has to be
	// told, as environment.
	Serve(host string) (env []string, err error)
	// Arrived is what the adapter has sent, in the order of its arrival.
	Arrived() []Arrival
	// Typed says whether people in a place have seen that the bot works on something.
	Typed(p Place) bool
	// Hasty is how many calls were refused since they came too fast.
	Hasty() int
	Close() error
}

// Trouble is what can be made to go wrong.
type Trouble interface {
	// Upset has something go wrong for a while, and says what.
	Upset(random *rand.Rand) string
	// Away has nobody reach the platform, or reach it again.
	Away(gone bool)
	// Break breaks the connections that there are.
	Break()
	// Disorder has the next n events come twice and out of order, and the last n again.
	Disorder(n int)
	// Spoil has the next message that is sent go wrong.
	Spoil(f Fault)
	// Expire has the bot's token be no longer good, or be good again.
	Expire(expired bool)
	// Deaths are chats that were made to come to an end, each in another way.
	Deaths() []Death
}

// Fault is how a message that is sent goes wrong.
type Fault struct {
	Status     int           // the answer
	RetryAfter time.Duration // it is refused for so long, in whole seconds
	Drop       bool          // there is no answer
	After      bool          // the message is there all the same
}

// Death is how a chat ends.
type Death struct {
	Name  string
	Place Place
	Die   func()
}

// Place is where people write.
type Place struct {
	Chat, Thread, Topic string
	Calls               bool // only a mention is sure of an answer
	Childless           bool // who answers has no child to call by name
	Fussy               bool // people do what changes the fate of other messages
}

// Act is what somebody does in a place.
type Act struct {
	Place
	Verb, Text string
	Target     string // the message that is edited, deleted, reacted to or answered
	File       *File  // that a message comes with
	Bot        bool   // it is another bot that does it
}

// File is a file at a message.
type File struct {
	Name string
	Data []byte
}

// Arrival is a message as people see it.
type Arrival struct {
	ID, Chat, Thread, Text string
	ReplyTo                string // the message that it is linked to
	Files                  []File
	At                     time.Time // when the request came
}

// faultName says how a fault shows.
func faultName(drops, nonsense, after, limited bool, status int) string {
	name := "slow"
	switch {
	case drops:
		name = "breaks off"
	case nonsense:
		name = "nonsense"
	case limited:
		name = "429"
	case status > 0:
		name = strconv.Itoa(status)
	}
	if after {
		name += " once done"
	}
	return name
}

// listenOn is where a platform is found on an instance's own address.
func listenOn(host, port string) string { return net.JoinHostPort(host, port) }
