module arizuko/migrations

go 1.26.0

require (
	github.com/golang-migrate/migrate/v4 v4.20.1
	golang.org/x/sys v0.49.0
)

require (
	github.com/mattn/go-sqlite3 v1.14.52 // indirect
	github.com/stretchr/testify v1.12.1 // indirect
)
