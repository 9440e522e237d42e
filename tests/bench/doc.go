// SPDX-License-Identifier: Apache-2.0

// Package bench measures the deployment controller beside a bare loop of
// server-side applies over the same objects, in one run on one control plane:
//
//	go test -run '^$' -bench . -benchtime 1x ./tests/bench
//
// One deployment of 1,000, 10,000 and 20,000 objects is installed, looked at again, upgraded,
// halved and removed; 100 and 1,000 deployments of four objects are installed until all are
// Ready. The controller is a process of its own, so that its memory is known, and has the
// memory limit of config/manager; the controller-manager of the control plane has a rate
// limit of 200 requests a second, ten times its default.
//
// A scaled-down run with the requests counted belongs to every test run.
package bench
