package slack

import "fmt"

// ownMessage is a message of the user.
func (r *room) ownMessage(by User, ts string) (*Message, error) {
	m := r.find(ts)
	if m == nil || m.isTombstoned || m.User != by.ID {
		return nil, fmt.Errorf("no message %s of %s", ts, by.RealName)
	}
	return m, nil
}

// TryEdit changes the text of the user's own message.
func (p Place) TryEdit(by User, ts, text string) (Message, error) {
	var edited Message
	err := p.try(func(r *room) error {
		m, err := r.ownMessage(by, ts)
		if err != nil {
			return err
		}
		before := m.snapshot()
		m.Text, m.Blocks = text, p.s.compose(by, Draft{Text: text}).Blocks
		m.Edited = &Edited{User: by.ID, TS: p.s.nextTS()}
		p.s.emitChanged(r, m, before)
		edited = m.snapshot()
		return nil
	})
	return edited, err
}

// Edit is TryEdit for an edit that must succeed.
func (p Place) Edit(by User, ts, text string) Message {
	m, err := p.TryEdit(by, ts, text)
	must(err)
	return m
}

// Unfurl adds the preview of a link to a message, which emits a change but no edit.
func (p Place) Unfurl(ts string) {
	p.act(func(r *room) error {
		m := r.find(ts)
		if m == nil {
			return fmt.Errorf("no message %s", ts)
		}
		before := m.snapshot()
		m.Attachments = []byte(`[{"id":1,"title":"A page","title_link":"https://example.org","from_url":"https://example.org","text":"What it is about"}]`)
		p.s.emitChanged(r, m, before)
		return nil
	})
}

// UnfurlMessage adds another message, to which the text of a message links, as a card.
func (p Place) UnfurlMessage(ts string, author User, text string) {
	p.act(func(r *room) error {
		m := r.find(ts)
		if m == nil {
			return fmt.Errorf("no message %s", ts)
		}
		before := m.snapshot()
		m.Attachments = encoded([]any{fields{
			"id": 1, "is_msg_unfurl": true, "author_name": author.RealName, "author_id": author.ID, "text": text,
			"fallback": text, "from_url": p.s.Base() + "/archives/x",
		}})
		p.s.emitChanged(r, m, before)
		return nil
	})
}

// Delete deletes the user's own message. The root of a thread becomes a tombstone: a change, not a
// deletion.
func (p Place) Delete(by User, ts string) {
	p.act(func(r *room) error {
		m, err := r.ownMessage(by, ts)
		if err == nil {
			p.s.delete(r, m)
		}
		return err
	})
}

// SetReaction adds or removes a reaction, by the name of the emoji.
func (p Place) SetReaction(by User, ts, name string, add bool) error {
	return p.try(func(r *room) error {
		m := r.find(ts)
		if m == nil || !r.in(by) || !m.react(by.ID, name, add) {
			return fmt.Errorf("%s cannot add or remove that reaction to message %s", by.RealName, ts)
		}
		p.s.emitReaction(r, m, by.ID, name, add)
		return nil
	})
}

// React is SetReaction for a reaction that must succeed.
func (p Place) React(by User, ts, name string) { must(p.SetReaction(by, ts, name, true)) }

// Unreact removes a reaction.
func (p Place) Unreact(by User, ts, name string) { must(p.SetReaction(by, ts, name, false)) }

// LockThread makes the thread of the Place take no more replies of apps.
func (p Place) LockThread() {
	p.act(func(r *room) error {
		root := r.root(p.ThreadTS)
		if root == nil {
			return fmt.Errorf("no thread %s", p.ThreadTS)
		}
		root.isLocked = true
		return nil
	})
}

// Remove deletes a message of anyone, as an admin may.
func (p Place) Remove(ts string) {
	p.act(func(r *room) error {
		m := r.find(ts)
		if m == nil {
			return fmt.Errorf("no message %s", ts)
		}
		p.s.delete(r, m)
		return nil
	})
}
