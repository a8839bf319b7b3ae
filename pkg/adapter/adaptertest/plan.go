package adaptertest

import (
	"context"
	"slices"
	"sync"

	"arizuko/pkg/msg"
)

// Plan holds the planned faults of a remote that is a fake. Its Fail is the Remote's. The zero value is
// ready to use.
type Plan struct {
	mu      sync.Mutex
	planned map[string]Fault // chat → how its next part fails
	asked   int              // calls of Deliver
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

// take removes the fault of a chat's next part, if it is of these classes. The caller holds the lock.
func (p *Plan) take(chat string, classes ...msg.ErrorClass) (f Fault, planned bool) {
	f, planned = p.planned[chat]
	if !planned || !slices.Contains(classes, f.Class) {
		return Fault{}, false
	}
	delete(p.planned, chat)
	return f, true
}

// Deliver makes the call that sends a part for a chat to the fake, and injects the planned fault before
// it. It makes one call at a time, since a fault of the fake affects its next call. A call that is to hang is
// not made: Deliver returns when ctx, that of the request, ends.
func (p *Plan) Deliver(ctx context.Context, chat string, inject func(Fault), call func()) {
	p.mu.Lock()
	p.asked++
	f, planned := p.take(chat, msg.Permanent, msg.Rate, msg.Auth, msg.Ambiguous)
	if f.Hangs {
		p.mu.Unlock()
		<-ctx.Done()
		return
	}
	defer p.mu.Unlock()
	if planned {
		inject(f)
	}
	call()
}

// Asked counts the calls that send parts; it is the Remote's.
func (p *Plan) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Unreached reports whether the next part for a chat must not reach the fake.
func (p *Plan) Unreached(chat string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, planned := p.take(chat, msg.Transient)
	return planned
}
