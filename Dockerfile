FROM python:3.11
RUN pip install tensorflow[and-cuda]==2.15.0
