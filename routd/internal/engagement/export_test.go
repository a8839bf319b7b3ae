package engagement

// SetMaxUnstored sets how many answers are kept in memory.
func (t *Tracker) SetMaxUnstored(n int) { t.maxUnstored = n }
