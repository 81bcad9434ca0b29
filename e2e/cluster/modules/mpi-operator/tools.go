//go:build tools

// Package mpioperator names the operator that dlctl is compared with, so that go.mod keeps what it needs.
package mpioperator

import _ "github.com/kubeflow/mpi-operator/cmd/mpi-operator/app"
