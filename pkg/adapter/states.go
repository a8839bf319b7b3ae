package adapter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// The delivery of a part is a table of states. next returns the action for a part, and afterSend and afterSearch the
// part's state after it; all are pure. A part that is queued has not arrived, unless its error
// class is ambiguous: then it is in doubt, as is one that an earlier process left as sending.
//
//	a part that is             | is
//	too old, not reachable     | failed (expired)
//	not rendered               | failed (permanent), ambiguous in doubt
//	to wait                    | kept
//	not admitted               | kept
//	without doubt, repeatable  | sent
//	in doubt, searchable       | searched for
//	in doubt, to be marked     | held while the platform does not answer, then sent with a mark
//	in doubt otherwise         | ambiguous
//
//	send ended as              | the part is
//	sent                       | sent
//	permanent                  | failed
//	rate                       | queued for as long as the platform asks
//	auth                       | queued for a minute
//	transient, not reached     | queued for a second: admission spaces the attempts
//	transient                  | queued for 1 s, 2 s … 5 min; failed after maxAttempts while the platform answers
//	ambiguous, repeatable      | the same
//	ambiguous, searchable      | the same, in doubt
//	ambiguous, to be marked    | queued in doubt until the next copy; failed after the last one
//	ambiguous otherwise        | ambiguous
//	none of these, and too old | failed (expired)
//
// A decoration that would wait for more than maxDecorationWait, or is tried maxDecorationAttempts times while its
// platform answers, has failed; it is ambiguous in doubt.
//
//	search ended as            | the part is
//	found                      | sent
//	not found                  | queued, without doubt
//	permanent                  | no longer searchable
//	another failure            | queued in doubt for 1 s, 2 s … 5 min; no longer searchable after maxAttempts

const (
	// maxAttempts bounds the retries of a part while its platform answers; with their pauses about 80
	// minutes. Attempts in an outage do not count.
	maxAttempts = 24
	// maxDecorationAttempts and maxDecorationWait are the same of a decoration, which is tried for seconds.
	maxDecorationAttempts = 5
	maxDecorationWait     = 15 * time.Second

	firstPause = time.Second
	maxPause   = 5 * time.Minute
	// authPause is how often a part is retried while the credentials are refused.
	authPause = time.Minute
	// maxWait bounds the wait that a platform asks for, and maxOwnWait every other one.
	maxWait    = 24 * time.Hour
	maxOwnWait = 30 * time.Minute
	// expiryGrace is how long a platform must be out of reach before rows expire untried, so that a clock
	// that is set after the start expires none.
	expiryGrace = time.Minute
)

// copyPauses returns how long after each ambiguous send a marked copy follows.
func copyPauses() []time.Duration {
	return []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, maxOwnWait}
}

// The records of a part in doubt.
const (
	markedRecord  = "resent with a mark: it may have arrived before"
	crashedRecord = "the daemon ended while this was being sent"
)

// conditions are all that a part's next step depends on besides the part. Times are unix milliseconds.
type conditions struct {
	now, queuedAt int64
	maxAge        time.Duration

	started    bool   // this process, not one before a crash, began to send the part
	waited     bool   // its not_before has passed
	renderErr  string // why it can't be rendered, "" if it can
	repeatable bool   // sending it twice does no harm
	searchable bool   // the platform can look for it
	searches   int    // searches for it that have failed while the platform answered
	markable   bool   // a marked copy may be sent
	decorates  bool   // it is part of a decoration

	mayCall bool          // this row is admitted to call the platform
	answers bool          // the platform answers calls, as far as is known
	outFor  time.Duration // how long it has been out of reach
}

// action is the kind of a step.
type action int

// The actions.
const (
	doWait   action = iota // wait for step.wait
	doPass                 // wait to be admitted
	doHold                 // wait until the platform answers
	doEnd                  // end the part as step.part
	doSend                 // send the part, unchanged
	doMark                 // send a marked copy
	doSearch               // search for the part
)

// step is the next action on a part.
type step struct {
	do   action
	wait time.Duration
	part store.Delivery
}

// doubtful reports whether a part may have arrived already: a crash interrupted the send, or the platform
// did not answer.
func (c *conditions) doubtful(p *store.Delivery) bool {
	return p.State == msg.OutSending && !c.started || p.State == msg.OutQueued && p.ErrorClass == msg.Ambiguous
}

// tooOld reports whether a row is older than it may become; one without a time never is.
func (c *conditions) tooOld() bool {
	return c.queuedAt > 0 && c.now-c.queuedAt > c.maxAge.Milliseconds()
}

// next decides the next step of a part that has not ended.
func next(p store.Delivery, c conditions) step {
	doubtful := c.doubtful(&p) && !c.repeatable
	switch {
	case c.renderErr != "" && doubtful:
		return step{do: doEnd, part: ended(p, msg.OutAmbiguous, msg.Ambiguous, cmp.Or(p.Error, crashedRecord))}
	case c.renderErr != "":
		return step{do: doEnd, part: ended(p, msg.OutFailed, msg.Permanent, c.renderErr)}
	case c.started:
		return step{do: doSend}
	case doubtful && !c.searchable && !c.markable:
		return step{do: doEnd, part: ended(p, msg.OutAmbiguous, msg.Ambiguous, cmp.Or(p.Error, crashedRecord))}
	}
	canGoOn := c.mayCall && (c.answers || !doubtful || c.searchable)
	switch {
	case !canGoOn && c.tooOld() && c.outFor >= expiryGrace:
		return step{do: doEnd, part: expired(p, c, cmp.Or(p.Error, "the platform was out of reach"))}
	case p.NotBefore > c.now && !c.waited:
		return step{do: doWait, wait: waitOf(&p, c.now)}
	case !c.mayCall:
		return step{do: doPass}
	case !canGoOn:
		return step{do: doHold}
	case !doubtful:
		return step{do: doSend}
	case c.searchable:
		return step{do: doSearch}
	}
	return step{do: doMark}
}

// waitOf returns how long a part found in the database waits: no longer than it was to wait when that was
// stored, as far as the part says so. The clock may have been set back since.
func waitOf(p *store.Delivery, now int64) time.Duration {
	longest := maxOwnWait
	switch p.ErrorClass {
	case msg.Rate:
		longest = maxWait
	case msg.Auth:
		longest = authPause
	case msg.Transient:
		longest = pauseAfter(p.Attempts)
	case msg.Ambiguous:
		pauses := copyPauses()
		longest = pauses[min(max(p.Attempts, 1), len(pauses))-1]
	}
	return min(until(p.NotBefore, now), longest)
}

// until returns the time left before at, both in unix ms.
func until(at, now int64) time.Duration {
	return max(0, time.Duration(at-now)*time.Millisecond)
}

// beginning is a part whose send begins, of the part itself or of a marked copy.
func beginning(p store.Delivery, as action) store.Delivery {
	p.State = msg.OutSending
	if as == doMark {
		p.ErrorClass, p.Error = msg.Ambiguous, markedRecord
	}
	return p
}

// ended is a part that is given up.
func ended(p store.Delivery, state msg.OutState, class msg.ErrorClass, why string) store.Delivery {
	p.State, p.ErrorClass, p.Error, p.NotBefore = state, class, why, 0
	return p
}

// expired is a part that was not delivered in time.
func expired(p store.Delivery, c conditions, why string) store.Delivery {
	return ended(p, msg.OutFailed, msg.Expired, fmt.Sprintf("not delivered within %s: %s", c.maxAge, why))
}

// afterSend is a part once its send ended. copied means that a marked copy was sent. why is the redacted
// text of err.
func afterSend(p store.Delivery, c conditions, copied bool, id string, err error, why string) store.Delivery {
	doubted := p.ErrorClass == msg.Ambiguous && !c.repeatable // an earlier send may have arrived
	var remark *Remark
	if err == nil || errors.As(err, &remark) {
		var records []string
		if copied {
			records = append(records, markedRecord)
		}
		if remark != nil {
			records = append(records, why)
		}
		p.State, p.PlatformID, p.ErrorClass, p.NotBefore = msg.OutSent, cmp.Or(id, p.PlatformID), "", 0
		p.Error = strings.Join(records, "; ")
		return p
	}
	f := failureOf(err)
	p.State, p.ErrorClass, p.Error, p.NotBefore = msg.OutQueued, f.Class, why, 0
	switch {
	case f.Class == msg.Permanent:
		return ended(p, msg.OutFailed, msg.Permanent, why)
	case f.Class == msg.Ambiguous && !c.repeatable:
		p = afterDoubt(p, c, why)
	default:
		p = retried(p, c, f, doubted)
	}
	if p.State == msg.OutQueued && c.tooOld() {
		return expired(p, c, why)
	}
	if p.State == msg.OutQueued && doubted { // this send failed, but the one before may have arrived
		p.ErrorClass = msg.Ambiguous
	}
	return endDecoration(p, c)
}

// endDecoration returns p as given up if it is part of a decoration and would be tried for too long.
func endDecoration(p store.Delivery, c conditions) store.Delivery {
	wait := until(p.NotBefore, c.now)
	switch {
	case !c.decorates || p.State != msg.OutQueued || wait <= maxDecorationWait && p.Attempts < maxDecorationAttempts:
		return p
	case p.ErrorClass == msg.Ambiguous && !c.repeatable:
		return ended(p, msg.OutAmbiguous, msg.Ambiguous, p.Error)
	}
	return ended(p, msg.OutFailed, p.ErrorClass, p.Error)
}

// failureOf is the failure in an error of a platform. One without a known class is ambiguous.
func failureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) && f.Class.Known() && f.Class != msg.Expired {
		return f
	}
	return &Failure{Class: msg.Ambiguous, Err: err}
}

// retried is a part that waits to be sent once more.
func retried(p store.Delivery, c conditions, f *Failure, doubted bool) store.Delivery {
	pause := firstPause
	switch {
	case f.Class == msg.Auth:
		pause = authPause
	case f.Class == msg.Rate:
		pause = max(f.After, firstPause)
		switch {
		case c.decorates && f.Account: // answers would wait once more
			p.Attempts = maxDecorationAttempts
		case c.decorates:
			p.Attempts++
		}
	case !f.unsent():
		// The attempts of a part in doubt are those that may have arrived.
		if c.answers && !doubted && (c.outFor == 0 || !c.decorates) {
			p.Attempts++
		}
		pause = pauseAfter(p.Attempts)
	}
	if p.Attempts >= maxAttempts {
		return ended(p, msg.OutFailed, f.Class, p.Error)
	}
	p.NotBefore = c.now + pause.Milliseconds()
	return p
}

// afterDoubt is a part after one more send that may have arrived.
func afterDoubt(p store.Delivery, c conditions, why string) store.Delivery {
	if !c.searchable && !c.markable {
		return ended(p, msg.OutAmbiguous, msg.Ambiguous, why)
	}
	pauses := copyPauses()
	p.Attempts++
	switch {
	case !c.searchable && p.Attempts > len(pauses), p.Attempts >= maxAttempts:
		return ended(p, msg.OutFailed, msg.Ambiguous, why)
	case c.searchable:
		p.NotBefore = c.now + pauseAfter(p.Attempts).Milliseconds()
	default:
		p.NotBefore = c.now + pauses[p.Attempts-1].Milliseconds()
	}
	return p
}

// afterSearch is a part once the search for it ended, and whether it can still be searched for.
func afterSearch(p store.Delivery, c conditions, id string, err error, why string) (after store.Delivery,
	searchable bool) {
	crashed := p.State == msg.OutSending
	p.State, p.ErrorClass, p.Error, p.NotBefore = msg.OutQueued, msg.Ambiguous, why, 0
	f := failureOf(err)
	switch {
	case err == nil && id != "":
		p.State, p.PlatformID, p.ErrorClass, p.Error = msg.OutSent, id, "", ""
		return p, true
	case err == nil:
		p.ErrorClass, p.Error = "", ""
		return p, true
	case f.Class != msg.Permanent && c.searches+1 < maxAttempts:
		p.NotBefore = c.now + max(pauseAfter(c.searches+1), f.After).Milliseconds()
		if c.tooOld() {
			return expired(p, c, why), true
		}
		return endDecoration(p, c), true
	case !crashed && c.markable: // after a crash a copy follows at once
		sent := copyPauses()[min(max(p.Attempts, 1), len(copyPauses()))-1]
		p.NotBefore = c.now + max(0, sent-pauseAfter(p.Attempts)).Milliseconds()
	}
	return p, false
}

func pauseAfter(attempts int) time.Duration {
	const steps = 9 // until maxPause is reached
	return min(firstPause<<min(max(attempts-1, 0), steps), maxPause)
}

// The states of a row's parts.

func isOpen(p store.Delivery) bool { return p.State == msg.OutQueued || p.State == msg.OutSending }

// over reports whether all parts have ended.
func over(parts []store.Delivery) bool { return !slices.ContainsFunc(parts, isOpen) }

// ending is how a row ends; its state is "" while a part is open.
type ending struct {
	state      msg.OutState
	platformID string // of the first part: replies and edits refer to it
	problem    string // why the row failed, "" if it did not
}

// endOf returns how a row with these parts ends: failed if a part failed, ambiguous if one may have arrived or there
// are no parts, else sent.
func endOf(parts []store.Delivery) ending {
	switch {
	case !over(parts):
		return ending{}
	case len(parts) == 0:
		return ending{state: msg.OutAmbiguous}
	}
	end := ending{state: msg.OutSent, platformID: parts[0].PlatformID}
	if parts[0].State == msg.OutCancelled { // the row is superseded
		end.state = msg.OutCancelled
	}
	for _, p := range parts {
		switch p.State {
		case msg.OutFailed:
			end.state, end.problem = msg.OutFailed, p.Error
			return end
		case msg.OutAmbiguous:
			end.state = msg.OutAmbiguous
		}
	}
	return end
}

// cancelRest cancels the parts after part i if that failed, and returns how many.
func cancelRest(parts []store.Delivery, i int) int {
	if parts[i].State != msg.OutFailed {
		return 0
	}
	rest := parts[i+1:]
	for j := range rest {
		rest[j].State = msg.OutCancelled
	}
	return len(rest)
}
