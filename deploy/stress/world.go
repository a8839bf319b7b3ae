package main

import (
	"math/rand/v2"
	"net"
)

// world is a chat platform with people in it that remembers everything: what they did, and what
// arrived. It is safe for concurrent use.
type world interface {
	// serve opens the platform on a machine's address, and returns what its adapter has to be
	// told, as environment.
	serve(host string) (env []string, err error)
	// adapter is the daemon that connects to it, and platform how addresses of its chats begin.
	adapter() (daemon, platform string)
	// places are where its people write.
	places() []place
	// do has somebody do something, and returns the id of the message they wrote.
	do(a act) (id string, err error)
	// quiet says whether the adapter has confirmed all that was done.
	quiet() bool
	// arrived is what the adapter has sent, in the order of its arrival.
	arrived() []arrival
	// cut is what the parts of a row look like, and again one that says that it may be a copy.
	cut(content string) []string
	again(text string) string
	// upset has something go wrong between the platform and its adapter, and says what.
	upset(random *rand.Rand) string
	// away has nobody reach the platform, or reach it again.
	away(gone bool)
	close() error
}

// place is where people write.
type place struct {
	chat, thread, topic string
	calls               bool // only a mention is sure of an answer
	childless           bool // who answers has no child to call by name
	fussy               bool // people do what changes the fate of other messages
}

// act is what somebody does in a place.
type act struct {
	place
	verb, text string
	target     string // the message that is edited, deleted or reacted to
}

// arrival is a message as people see it.
type arrival struct{ id, chat, thread, text string }

// worldPort is where a platform is found on an instance's own address.
const worldPort = "9090"

func listenOn(host string) string { return net.JoinHostPort(host, worldPort) }
