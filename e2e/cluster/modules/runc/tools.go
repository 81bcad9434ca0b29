//go:build tools

// Package runc names what starts a container, so that go.mod keeps what it needs.
package runc

import _ "github.com/opencontainers/runc/libcontainer"
