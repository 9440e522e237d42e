// SPDX-License-Identifier: Apache-2.0

// Package dump has the command debug dump: an archive with everything that a report of a fault needs, without secrets.
package dump
