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
// With SATCHEL_FULL=1 a benchmark measures all of its sizes, else the smallest. BenchmarkMixed (25,000 objects),
// BenchmarkManyDeployments (5,000) and BenchmarkManyKinds (3,000 CRDs) look for costs that grow faster than what is measured;
// BenchmarkSources and BenchmarkLargeImage measure the source controller. With SATCHEL_BENCH_PROFILES=FOLDER each measurement
// leaves CPU profiles of the controller, one a second; docs/dev/profiles.md has what they show:
//
//	SATCHEL_BENCH_PROFILES=/tmp/p go test -run '^$' -bench Edits -benchtime 1x ./tests/bench && go tool pprof -top /tmp/p/*
//
// A scaled-down run with the requests counted belongs to every test run. So does one of drift:
// objects are changed at random, and the time and the writes until each is restored are
// measured; then other clients scale workloads and write status and annotations, which must not
// be undone.
// With SATCHEL_FULL it is 1,000 changes over 2,000 objects, and ten minutes of what others do:
//
//	SATCHEL_FULL=1 go test -count=1 -v -timeout 30m -run TestF26RandomDrift ./tests/bench
//
// SATCHEL_ACTIVITY is another duration than those ten minutes, such as 2m.
package bench
