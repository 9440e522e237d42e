// SPDX-License-Identifier: Apache-2.0

// Package objecterror describes what the API server answered to a request about one object: which fields are immutable,
// whether the resource is served, which webhook could not be called. Its texts are fit for status and logs, and contain
// no values of Secrets. It sends no requests.
package objecterror
