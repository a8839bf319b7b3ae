package adaptertest

import (
	"slices"
	"sync"

	"arizuko/pkg/msg"
)

// Plan keeps how a remote is to fail, for worlds around a fake that fails on demand: its Fail is
// the Remote's. The zero value is ready.
type Plan struct {
	mu      sync.Mutex
	planned map[string]Fault // chat → how its next part fails
}

// Fail plans how the next part for a chat fails.
func (p *Plan) Fail(chat string, f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.planned == nil {
		p.planned = map[string]Fault{}
	}
	p.planned[chat] = f
}

// take is what is planned for a chat's next part, of these classes. The lock is held.
func (p *Plan) take(chat string, classes ...msg.ErrorClass) (f Fault, planned bool) {
	f, planned = p.planned[chat]
	if !planned || !slices.Contains(classes, f.Class) {
		return f, false
	}
	delete(p.planned, chat)
	return f, true
}

// Deliver makes the call that brings a part for a chat to the fake, after it had spoil tell the
// fake how to fail, if that is planned. Calls go through one by one: a fault of the fake meets
// its next call, whosever it is.
func (p *Plan) Deliver(chat string, spoil func(Fault), call func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f, planned := p.take(chat, msg.Permanent, msg.Rate, msg.Auth, msg.Ambiguous); planned {
		spoil(f)
	}
	call()
}

// Unreached reports whether the next part for a chat is planned not to get as far as the fake.
func (p *Plan) Unreached(chat string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, planned := p.take(chat, msg.Transient)
	return planned
}
