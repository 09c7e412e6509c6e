"use strict";

const { ToolspanError, classes } = require("./errors.js");

module.exports = { ...require("./api.js"), ...require("./tool.js"), ToolspanError, ...classes };
