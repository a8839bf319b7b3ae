// Package world has chat platforms with people in them, for trials of whole instances: fakes that
// speak the platforms' own protocols, in front of the daemons that connect to them.
package world

import (
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// World is a platform that remembers what its people did, and what arrived. It is safe for
// concurrent use.
type World interface {
	About() About
	People
	Wire
}

// About is what is to be known of a platform.
type About struct {
	Daemon   string // who connects to it
	Platform string // how addresses of its chats begin
	DMs      string // and what the rooms look like that are DMs, as a pattern of routes
	// Cut is what the parts of an outbound row look like.
	Cut func(content string) []string
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
	// Hasty is how many calls were refused since they came too fast.
	Hasty() int
	// Upset has something go wrong for a while, and says what.
	Upset(random *rand.Rand) string
	// Away has nobody reach the platform, or reach it again.
	Away(gone bool)
	Close() error
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
	Target     string // the message that is edited, deleted or reacted to
}

// Arrival is a message as people see it.
type Arrival struct {
	ID, Chat, Thread, Text string
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
