package engagement_test

// place is where people talk: a chat, and in it a thread or a line of work.
type place struct{ chat, in string }

// hold is a folder's hold on a place: it answers there without being called. It is as old as the
// mention or the word that it began with.
type hold struct {
	folder string
	since  int64
}

// mention is a hold from the moment it came, for as long as anything of its turn is under way.
type mention struct {
	hold
	working bool
	unsent  int   // replies that have not arrived, nor failed for good
	over    int64 // when the last of that ended, 0 before
}

// model is engagement as people are told of it. It is told each event when it happens, and
// remembers for each place the mentions and one window.
type model struct {
	ttl    int64
	places map[place]*talk
	pinned map[string]int64 // by chat
}

type talk struct {
	mentions []*mention
	window   hold
	until    int64
	ended    int64
}

func newModel(ttl int64) *model {
	return &model{ttl: ttl, places: map[place]*talk{}, pinned: map[string]int64{}}
}

func (m *model) talk(p place) *talk {
	if m.places[p] == nil {
		m.places[p] = &talk{}
	}
	return m.places[p]
}

// holder is who answers in a place what came at a time: the youngest hold of all.
func (m *model) holder(p place, at int64) (youngest hold) {
	t := m.talk(p)
	if at < t.until {
		youngest = t.window
	}
	for _, c := range t.mentions {
		if c.underWay(at) && c.since > youngest.since {
			youngest = c.hold
		}
	}
	if youngest.since <= m.cut(p) {
		return hold{}
	}
	return youngest
}

func (c *mention) underWay(at int64) bool { return c.since <= at && (c.over == 0 || at <= c.over) }

// cut is up to when holds on a place are over for good.
func (m *model) cut(p place) int64 { return max(m.talk(p).ended, m.pinned[p.chat]) }

// came is a mention or reply that fires a turn. Handed on to another group it stays the mention
// it was.
func (m *model) came(p place, by hold) *mention {
	c := &mention{hold: by, working: true}
	m.talk(p).mentions = append(m.talk(p).mentions, c)
	return c
}

// delivered is a part of an answer that has arrived: it keeps its folder's window open, or opens
// one if the folder was called after whoever has one.
func (m *model) delivered(p place, folder string, now int64) {
	t, by := m.talk(p), hold{}
	open := now < t.until && t.window.folder != "" && t.window.since > m.cut(p)
	if open && t.window.folder == folder {
		by = t.window
	}
	for _, c := range t.mentions {
		if c.folder == folder && c.underWay(now) && c.since > max(by.since, m.cut(p)) {
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

// settle ends what is under way of a mention, if it has all ended.
func (c *mention) settle(now int64) {
	if c != nil && !c.working && c.unsent == 0 && c.over == 0 {
		c.over = now
	}
}

func (m *model) engage(p place, folder string, now, ttl int64) {
	m.talk(p).window, m.talk(p).until = hold{folder, now}, now+ttl
}

func (m *model) disengage(p place, now int64) {
	m.engage(p, "", 0, 0)
	m.talk(p).ended = now
}

func (m *model) pin(chat string, at int64) { m.pinned[chat] = at }
