package store

// The statements about processes and leases, of a database that several machines share.
const (
	queryProcess = `SELECT 1 FROM processes WHERE id = ?`

	updateRenewed = `UPDATE processes SET until = clock_ms() + ?2+0 WHERE id = ?1`
)
