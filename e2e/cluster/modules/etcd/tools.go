//go:build tools

// Package etcd names the storage of the cluster, so that go.mod keeps what it needs.
package etcd

import _ "go.etcd.io/etcd/server/v3/etcdmain"
