package scenarios

import "arizuko/deploy/e2e/invariants"

// checkEnd lets everything finish, stops the daemons and holds the database
// against the invariants.
func (s *Suite) checkEnd() {
	if s.t.Failed() || s.db == nil {
		return
	}
	if s.instance.Running(Gated) && s.instance.Running(Routd) {
		s.Settle()
	}
	for _, name := range []string{Gated, Routd} {
		if !s.instance.Running(name) {
			continue
		}
		if code := s.Stop(name); code != 0 {
			s.t.Errorf("%s ended with %d", name, code)
		}
	}
	if left := s.strays(); len(left) > 0 {
		s.t.Errorf("agents are left running: %v", left)
	}
	undecided := s.lines(`SELECT id FROM messages WHERE direction = 'in' AND disposition IS NULL`)
	if !s.allWaiting(undecided) {
		s.t.Errorf("rows are undecided: %v", undecided)
	}
	found, err := invariants.Check(s.db, invariants.Path())
	if err != nil {
		s.t.Error(err)
	}
	for _, f := range found {
		s.t.Error(f)
	}
}
