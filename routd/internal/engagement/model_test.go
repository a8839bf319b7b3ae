package engagement_test

// place is a chat, and in it a thread or a topic.
type place struct{ chat, in string }

// hold is a folder's hold on a place: it answers there without being called. It began with a
// mention or a request.
type hold struct {
	folder string
	since  int64
}

// mention is a hold from the moment it came, while anything of its turn is in progress. A row of an
// engaged place counts as one.
type mention struct {
	hold
	*progress
}

// progress is that of a turn.
type progress struct {
	working bool
	unsent  int   // replies that have not arrived, nor failed for good
	over    int64 // when the last of that ended, 0 before
}

// model is engagement as the README describes it. It receives each event when it happens, and
// keeps the mentions and one window of each place.
type model struct {
	ttl    int64
	places map[place]*history
	pinned map[string]int64 // by chat
}

type history struct {
	mentions []*mention
	window   hold
	until    int64
	ended    int64
}

func newModel(ttl int64) *model {
	return &model{ttl: ttl, places: map[place]*history{}, pinned: map[string]int64{}}
}

func (m *model) history(p place) *history {
	if m.places[p] == nil {
		m.places[p] = &history{}
	}
	return m.places[p]
}

// holder returns the newest hold on a place at a time: its folder answers there.
func (m *model) holder(p place, at int64) (youngest hold) {
	t := m.history(p)
	if at < t.until {
		youngest = t.window
	}
	for _, c := range t.mentions {
		if c.inForce(at) && c.since > youngest.since {
			youngest = c.hold
		}
	}
	if youngest.since <= m.cut(p) {
		return hold{}
	}
	return youngest
}

func (c *mention) inForce(at int64) bool { return c.since <= at && (c.over == 0 || at <= c.over) }

// cut is the time up to which all holds on a place have been ended.
func (m *model) cut(p place) int64 { return max(m.history(p).ended, m.pinned[p.chat]) }

// called adds a mention or reply, or a row of an engaged place, that fires a turn or joins one. A
// delegated turn has those of its root.
func (m *model) called(p place, by hold, of *progress) {
	m.history(p).mentions = append(m.history(p).mentions, &mention{by, of})
}

// delivered applies a part of an answer that has arrived: it keeps its folder's window open, or
// opens one if the folder was called after the holder of the present one.
func (m *model) delivered(p place, folder string, now int64) {
	t, by := m.history(p), hold{}
	open := now < t.until && t.window.folder != "" && t.window.since > m.cut(p)
	if open && t.window.folder == folder {
		by = t.window
	}
	for _, c := range t.mentions {
		if c.folder == folder && c.inForce(now) && c.since > max(by.since, m.cut(p)) {
			by = c.hold
		}
	}
	switch {
	case by.folder == "", open && t.window.since > by.since:
		return
	case !open, t.window.folder != folder:
		t.until = 0
	}
	t.window, t.until = by, max(t.until, now+m.ttl)
}

// checkOver ends the mentions of a turn once nothing of it is in progress.
func (c *progress) checkOver(now int64) {
	if c != nil && !c.working && c.unsent == 0 && c.over == 0 {
		c.over = now
	}
}

func (m *model) engage(p place, folder string, now, ttl int64) {
	m.history(p).window, m.history(p).until = hold{folder, now}, now+ttl
}

func (m *model) disengage(p place, now int64) {
	m.engage(p, "", 0, 0)
	m.history(p).ended = now
}

func (m *model) pin(chat string, at int64) { m.pinned[chat] = at }
