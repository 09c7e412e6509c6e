"use strict";

// The operations, events and options this package was written for.
module.exports = { abiVersion: 1, schemaHash: "5625b1c63879b861" };
