"use strict";

window.addEventListener("DOMContentLoaded", () => {
  // Loading the page again starts another session, or says why there can be none.
  document.getElementById("again").addEventListener("click", () => window.location.reload());

  // The terminal takes keys without a click, as soon as its socket is open.
  const opened = new MutationObserver(() => {
    if (document.body.classList.contains("-loaded")) {
      opened.disconnect();
      document.querySelector(".xterm-helper-textarea").focus();
    }
  });
  opened.observe(document.body, { attributeFilter: ["class"] });
});
