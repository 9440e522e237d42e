// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds, starts, stops, kills and restarts a real Kubernetes control plane for
// tests and the demo, without Docker: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and
// kwok, which makes Pods ready on fake nodes. All of them are child processes on 127.0.0.1 with their own
// certificates, and none outlives the process that started it, however that ends.
//
// A test package that shares one control plane between its tests has
//
//	func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }
//
//	func TestSomething(t *testing.T) {
//		cp := controlplane.Shared(t)
//		namespace := controlplane.NewNamespace(t, cp)
//		...
//	}
//
// A test that kills components starts its own with [Start]. The audit log is always on, see
// [ControlPlane.Audit]; it is the oracle for who did what.
//
// The first build of the binary takes minutes, see [Build]; run it before `go test`, because
// it would use up the time limit of the test:
//
//	go run ./tests/controlplane/cmd/controlplane build
package controlplane
