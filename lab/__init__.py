"""The lab: an application in the browser in which one configures a run, plays it and sees its results."""
