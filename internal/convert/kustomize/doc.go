// SPDX-License-Identifier: Apache-2.0

// Package kustomize builds kustomizations of untrusted bundles with kustomize's own library.
//
// That library reads what a kustomization names: files, folders, but also URLs, which it fetches, and Git repositories, which
// it clones by running git. So everything that a kustomization can reach is checked first, and the library sees the files that
// were checked and no others. A build has no bounds of time and memory: callers run it in a worker process. See ADR 14.
package kustomize
