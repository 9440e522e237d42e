// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"io"
)

// Options choose how a control plane starts. The zero value is a good choice for tests.
type Options struct {
	// Dir keeps state, logs, certificates and ports. A directory that was used before is resumed, with
	// the same ports and certificates. Default: a temporary one, which Stop removes.
	Dir string

	// Nodes is the number of fake nodes; negative for none. Default: 3.
	Nodes int

	// QPS is the rate limit of the controller-manager's and the scheduler's clients. Default: 200, ten
	// times the default of the controller-manager; say so where you publish a measurement.
	QPS float32

	// Fsync makes etcd wait for the disk. Off, killed processes lose nothing, a killed machine may.
	Fsync bool

	// EtcdProxy is called with the host and port of etcd, where TLS is spoken, and returns the host and
	// port on 127.0.0.1 to which the API server connects instead, to delay or break that connection.
	EtcdProxy func(etcd string) (proxy string, err error)

	// Seed writes what is in etcd before the API server starts.
	Seed func(context.Context, Store) error

	// APIServerArgs are added to the arguments of kube-apiserver, and win over the others.
	APIServerArgs []string

	// ControllerManagerArgs are added to the arguments of kube-controller-manager.
	ControllerManagerArgs []string

	// KwokConfig is added to the configuration of kwok: YAML documents, such as a ClusterPortForward.
	KwokConfig string

	// Reserve is the number of further control planes for which to reserve places beforehand; start them
	// with Beside. Without, two processes that each run one and wait for another would wait for ever.
	Reserve int

	// Beside is a control plane of this process; this one takes a place of its Reserve.
	Beside *ControlPlane

	// Progress gets a line about everything that takes long. Default: silent.
	Progress io.Writer
}

const (
	defaultNodes = 3
	defaultQPS   = 200
)

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	if o.QPS == 0 {
		o.QPS = defaultQPS
	}
	return o
}
