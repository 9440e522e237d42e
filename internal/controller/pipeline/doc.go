// SPDX-License-Identifier: Apache-2.0

// Package pipeline has what all controllers share around a reconcile:
//
//   - [Run] runs a reconcile as a list of named steps over one state. The name of a step serves as log key, metric label and
//     prefix of its errors in the log, so that log lines and dashboards use the same names.
//   - [SetReady] and the functions beside it write conditions that follow kstatus, and [StatusWriter] patches a status only
//     when it changed. Messages of conditions, events and the log are bounded and escaped.
//   - [Turns] shares the workers between namespaces, and [Demands] limits how often users can request reconciles, so that
//     slow or busy objects of one namespace do not block those of others.
//   - [Backoff] remembers how often an object failed in a row, and [Running] which reconciles run, so that one that is stuck
//     is detected.
//
// It knows no kind, and nothing about sources and deployments: what depends on these stays in their controllers. What is
// about something other than the course of a reconcile has a package of its own: shards, notifications, counts of objects,
// labels of namespaces, protected addresses.
package pipeline
